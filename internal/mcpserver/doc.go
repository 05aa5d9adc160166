// Package mcpserver is reprise as a Model Context Protocol server: tools,
// resources and prompts over stdio and Streamable HTTP, on the official SDK.
//
// It owns the job table (which runs a client may still collect), the guard in
// front of the SDK's transport, the schemas and the access tokens for HTTP. It
// starts no process itself: runs, memory and search are reached through the
// small interfaces in deps.go.
//
// Files it may write: the token file that TokenStore is given, through
// internal/durable. Nothing is written, locked or listened on while a stdio
// server starts, because clients start sibling copies of a server only to look
// at it.
//
// Lock: the token file's, <file>.lock, while a token is made or revoked. In
// memory the job table has one mutex, never held during a call to anything
// else.
//
// What the SDK leaves to a server and is done here: a line that is not a
// message must not end the session (guard.go), a panic in a handler must not
// end the process, initialize after discover must be answered (core.go),
// schemas must be plain enough for every client (schema.go), answers must be
// small enough (answer.go), and a foreign Origin must be refused (gate.go).
package mcpserver
