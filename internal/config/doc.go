// Package config knows where reprise keeps things and how it is set up: the
// environment it was started in, its directories, its settings file, and the
// project a directory belongs to.
//
// Reading has no side effects: no directory is made, no program is looked for,
// no network is touched. The files this package may write are a project's
// .reprise/project.yaml and one line of its .gitignore (InitProject), and the
// register of project names, <data>/projects/<name>/project.json
// (Paths.Claim), always through package durable. Claim takes the lock
// <data>/projects/<name>/project.json.lock; nothing else here locks.
package config
