//go:build !race

package jsonl

// longTurns is how many turns a long session has.
const longTurns = 2000
