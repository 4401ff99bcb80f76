package search

import (
	"bytes"
	"context"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// automaton decides line by line whether an expression matches, reading each
// character once. It builds its states on demand. A byte that is not UTF-8
// counts as one unknown character. It is not safe for concurrent use.
type automaton struct {
	prog  *syntax.Prog
	words bool // the expression depends on word boundaries
	lines bool // the expression depends on line starts

	states []state
	known  map[string]uint32
	next   []uint32          // state number + byte → number of the next state, or an action
	wide   map[uint64]uint32 // state number and non-ASCII character → the same
	start  uint32

	met  []bool // instructions met while building a state
	work []uint32
}

// state is the state before a byte: the active instructions, except
// that a match may also begin here, and the kind of the byte before.
type state struct {
	pcs    []uint32
	before before
}

type before uint8

const (
	other before = iota
	word
	nothing // at the beginning of a line
)

// These values are actions in place of a next state. A state's
// number is the index of its part of next, from firstState on.
const (
	unknown    = 0 // not computed yet
	matched    = 1
	beyond     = 2 // a non-ASCII byte: look up the character
	firstState = 256

	maxStates = 1000    // states kept; beyond that, all are rebuilt
	maxWide   = 100_000 // the same for transitions on non-ASCII characters
)

func newAutomaton(prog *syntax.Prog) *automaton {
	a := &automaton{prog: prog, met: make([]bool, len(prog.Inst))}
	for _, in := range prog.Inst {
		if in.Op != syntax.InstEmptyWidth {
			continue
		}
		switch syntax.EmptyOp(in.Arg) {
		case syntax.EmptyBeginLine, syntax.EmptyBeginText:
			a.lines = true
		case syntax.EmptyWordBoundary, syntax.EmptyNoWordBoundary:
			a.words = true
		}
	}
	a.forget()
	return a
}

// forget resets the automaton.
func (a *automaton) forget() {
	a.states, a.next = a.states[:0], append(a.next[:0], make([]uint32, firstState)...)
	a.known, a.wide = make(map[string]uint32), make(map[uint64]uint32)
	start := state{}
	if a.lines {
		start.before = nothing
	}
	a.start = a.number(start)
}

// window is how much is searched between two checks of the context.
const window = 64 << 10

// find appends the matching lines of data to list, up to limit.
func (a *automaton) find(ctx context.Context, data []byte, list []span, limit int) []span {
	s, i := a.start, 0
	for i < len(data) && len(list) < limit && ctx.Err() == nil {
		for end := min(i+window, len(data)); i < end; {
			to := a.step(s, data[i])
			switch {
			case to == s:
				row := (*[256]uint32)(a.next[s:])
				for i++; i < end && row[data[i]] == s; i++ {
				}
				continue
			case to >= firstState:
				s = to
				i++
				continue
			case to == beyond:
				r, size := utf8.DecodeRune(data[i:])
				if to = a.stepWide(s, r); to >= firstState {
					s = to
					i += size
					continue
				}
			}
			l := lineAt(data, i)
			if list = append(list, l); len(list) == limit {
				return list
			}
			s, i = a.start, l.to+1
		}
	}
	if i == len(data) && i > 0 && data[i-1] != '\n' && len(list) < limit && a.step(s, '\n') == matched {
		list = append(list, lineAt(data, i-1))
	}
	return list
}

// matchAt returns the position in a line where a match is certain, or -1.
func (a *automaton) matchAt(line []byte) int {
	s := a.start
	for i := 0; i < len(line); {
		to, size := a.step(s, line[i]), 1
		if to == beyond {
			var r rune
			r, size = utf8.DecodeRune(line[i:])
			to = a.stepWide(s, r)
		}
		if to == matched {
			return i
		}
		s = to
		i += size
	}
	if a.step(s, '\n') == matched {
		return len(line)
	}
	return -1
}

// step returns the next state after a byte.
func (a *automaton) step(s uint32, b byte) uint32 {
	if to := a.next[s+uint32(b)]; to != unknown {
		return to
	}
	return a.explore(s, b)
}

// stepWide returns the next state after a non-ASCII character.
func (a *automaton) stepWide(s uint32, r rune) uint32 {
	key := uint64(s)<<32 | uint64(r)
	if to, ok := a.wide[key]; ok {
		return to
	}
	waiting, match := a.waiting(a.states[s/256-1], r)
	if match {
		a.wide[key] = matched
		return matched
	}
	then := a.after(waiting, r)
	if len(a.states) >= maxStates || len(a.wide) >= maxWide {
		a.forget()
		return a.number(then)
	}
	to := a.number(then)
	a.wide[key] = to
	return to
}

// explore computes the next state after a byte.
func (a *automaton) explore(s uint32, b byte) uint32 {
	if b >= 0x80 {
		a.next[s+uint32(b)] = beyond
		return beyond
	}
	from := a.states[s/256-1]
	waiting, match := a.waiting(from, rune(b))
	to := uint32(matched)
	switch {
	case match:
	case b == '\n':
		to = a.start
	default:
		then := a.after(waiting, rune(b))
		if len(a.states) >= maxStates {
			a.forget()
			return a.number(then)
		}
		to = a.number(then)
	}
	a.next[s+uint32(b)] = to
	return to
}

// number returns the number of a state.
func (a *automaton) number(s state) uint32 {
	key := []byte{byte(s.before)}
	for _, pc := range s.pcs {
		key = binary.AppendUvarint(key, uint64(pc))
	}
	n, ok := a.known[string(key)]
	if !ok {
		a.states = append(a.states, s)
		n = uint32(len(a.states)) * 256
		a.next = append(a.next, make([]uint32, 256)...)
		a.known[string(key)] = n
	}
	return n
}

// waiting returns the instructions that wait for a character between
// the previous one and r, unless the expression matches there.
func (a *automaton) waiting(from state, r rune) (pcs []uint32, match bool) {
	holds := syntax.EmptyNoWordBoundary // between the previous character and r; the end of a line counts as the end of the text
	if (from.before == word) != isWord(r) {
		holds = syntax.EmptyWordBoundary
	}
	if from.before == nothing {
		holds |= syntax.EmptyBeginLine | syntax.EmptyBeginText
	}
	if r == '\n' {
		holds |= syntax.EmptyEndLine | syntax.EmptyEndText
	}
	clear(a.met)
	a.work = append(a.work[:0], from.pcs...)
	a.work = append(a.work, uint32(a.prog.Start))
	for len(a.work) > 0 {
		pc := a.work[len(a.work)-1]
		a.work = a.work[:len(a.work)-1]
		if a.met[pc] {
			continue
		}
		a.met[pc] = true
		switch in := &a.prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return nil, true
		case syntax.InstAlt, syntax.InstAltMatch:
			a.work = append(a.work, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			a.work = append(a.work, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^holds == 0 {
				a.work = append(a.work, in.Out)
			}
		case syntax.InstFail:
		default:
			pcs = append(pcs, pc)
		}
	}
	return pcs, false
}

// after returns the state after r.
func (a *automaton) after(waiting []uint32, r rune) (s state) {
	for _, pc := range waiting {
		if in := &a.prog.Inst[pc]; in.MatchRune(r) {
			s.pcs = append(s.pcs, in.Out)
		}
	}
	slices.Sort(s.pcs)
	s.pcs = slices.Compact(s.pcs)
	if a.words && isWord(r) {
		s.before = word
	}
	return s
}

// lineAt returns the line of data around position at.
func lineAt(data []byte, at int) span {
	l := span{bytes.LastIndexByte(data[:at], '\n') + 1, len(data)}
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		l.to = at + i
	}
	return l
}
