//go:build race

package jsonl

// longTurns is how many turns a long session has: fewer where all is slow, and no fewer than show it.
const longTurns = 1000
