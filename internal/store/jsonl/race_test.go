//go:build race

package jsonl

// longTurns is how many turns a long session has: fewer where all is slow.
const longTurns = 500
