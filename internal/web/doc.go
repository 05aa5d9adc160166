// Package web is the dashboard: pages on a loopback address that show what there
// is (runs, loop and queue, tasks, memory, events, guard) and forms that change
// it by the same calls as the command line.
//
// Pages are made here, by html/template, and can be read without JavaScript; a
// small script has parts of a page drawn anew when what they show has changed.
// What agents, tools and files said is foreign text: it is escaped by the
// templates, markdown is rendered without raw HTML and without images, and what
// an eye cannot see is made visible in every answer (see render.go). Package
// gate has who is let in.
//
// It owns no files and takes no locks; what it has written, it has written by the
// packages below, which lock for themselves.
package web
