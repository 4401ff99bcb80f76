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
	prog          *syntax.Prog
	hasWordBounds bool // the expression depends on word boundaries
	hasLineStarts bool // the expression depends on line starts

	states          []state
	stateNumbers    map[string]uint32
	transitions     []uint32          // state number + byte → number of the next state, or an action
	wideTransitions map[uint64]uint32 // state number and non-ASCII character → the same
	start           uint32

	visited []bool // instructions met while building a state
	pending []uint32
}

// state is the state before a byte: the active instructions, except
// that a match may also begin here, and the kind of the byte before.
type state struct {
	pcs  []uint32
	prev prevKind
}

type prevKind uint8

const (
	prevOther prevKind = iota
	prevWord
	prevNone // at the beginning of a line
)

// These values are actions in place of a next state. A state's
// number is the index of its part of next, from firstStateID on.
const (
	actionUnknown = 0 // not computed yet
	actionMatch   = 1
	actionWide    = 2 // a non-ASCII byte: look up the character
	firstStateID  = 256

	maxStates          = 1000    // states kept; beyond that, all are rebuilt
	maxWideTransitions = 100_000 // the same for transitions on non-ASCII characters
)

func newAutomaton(prog *syntax.Prog) *automaton {
	a := &automaton{prog: prog, visited: make([]bool, len(prog.Inst))}
	for _, in := range prog.Inst {
		if in.Op != syntax.InstEmptyWidth {
			continue
		}
		switch syntax.EmptyOp(in.Arg) {
		case syntax.EmptyBeginLine, syntax.EmptyBeginText:
			a.hasLineStarts = true
		case syntax.EmptyWordBoundary, syntax.EmptyNoWordBoundary:
			a.hasWordBounds = true
		}
	}
	a.reset()
	return a
}

// reset resets the automaton.
func (a *automaton) reset() {
	a.states, a.transitions = a.states[:0], append(a.transitions[:0], make([]uint32, firstStateID)...)
	a.stateNumbers, a.wideTransitions = make(map[string]uint32), make(map[uint64]uint32)
	start := state{}
	if a.hasLineStarts {
		start.prev = prevNone
	}
	a.start = a.stateNumber(start)
}

// checkInterval is how much is searched between two checks of the context.
const checkInterval = 64 << 10

// find appends the matching lines of data to list, up to limit.
func (a *automaton) find(ctx context.Context, data []byte, list []span, limit int) []span {
	s, i := a.start, 0
	for i < len(data) && len(list) < limit && ctx.Err() == nil {
		for end := min(i+checkInterval, len(data)); i < end; {
			to := a.step(s, data[i])
			switch {
			case to == s:
				row := (*[256]uint32)(a.transitions[s:])
				for i++; i < end && row[data[i]] == s; i++ {
				}
				continue
			case to >= firstStateID:
				s = to
				i++
				continue
			case to == actionWide:
				r, size := utf8.DecodeRune(data[i:])
				if to = a.stepWide(s, r); to >= firstStateID {
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
	if i == len(data) && i > 0 && data[i-1] != '\n' && len(list) < limit && a.step(s, '\n') == actionMatch {
		list = append(list, lineAt(data, i-1))
	}
	return list
}

// matchAt returns the position in a line where a match is certain, or -1.
func (a *automaton) matchAt(line []byte) int {
	s := a.start
	for i := 0; i < len(line); {
		to, size := a.step(s, line[i]), 1
		if to == actionWide {
			var r rune
			r, size = utf8.DecodeRune(line[i:])
			to = a.stepWide(s, r)
		}
		if to == actionMatch {
			return i
		}
		s = to
		i += size
	}
	if a.step(s, '\n') == actionMatch {
		return len(line)
	}
	return -1
}

// step returns the next state after a byte.
func (a *automaton) step(s uint32, b byte) uint32 {
	if to := a.transitions[s+uint32(b)]; to != actionUnknown {
		return to
	}
	return a.computeNext(s, b)
}

// stepWide returns the next state after a non-ASCII character.
func (a *automaton) stepWide(s uint32, r rune) uint32 {
	key := uint64(s)<<32 | uint64(r)
	if to, ok := a.wideTransitions[key]; ok {
		return to
	}
	waiting, match := a.pendingInsts(a.states[s/256-1], r)
	if match {
		a.wideTransitions[key] = actionMatch
		return actionMatch
	}
	then := a.stateAfter(waiting, r)
	if len(a.states) >= maxStates || len(a.wideTransitions) >= maxWideTransitions {
		a.reset()
		return a.stateNumber(then)
	}
	to := a.stateNumber(then)
	a.wideTransitions[key] = to
	return to
}

// computeNext computes the next state after a byte.
func (a *automaton) computeNext(s uint32, b byte) uint32 {
	if b >= 0x80 {
		a.transitions[s+uint32(b)] = actionWide
		return actionWide
	}
	from := a.states[s/256-1]
	waiting, match := a.pendingInsts(from, rune(b))
	to := uint32(actionMatch)
	switch {
	case match:
	case b == '\n':
		to = a.start
	default:
		then := a.stateAfter(waiting, rune(b))
		if len(a.states) >= maxStates {
			a.reset()
			return a.stateNumber(then)
		}
		to = a.stateNumber(then)
	}
	a.transitions[s+uint32(b)] = to
	return to
}

// stateNumber returns the number of a state.
func (a *automaton) stateNumber(s state) uint32 {
	key := []byte{byte(s.prev)}
	for _, pc := range s.pcs {
		key = binary.AppendUvarint(key, uint64(pc))
	}
	n, ok := a.stateNumbers[string(key)]
	if !ok {
		a.states = append(a.states, s)
		n = uint32(len(a.states)) * 256
		a.transitions = append(a.transitions, make([]uint32, 256)...)
		a.stateNumbers[string(key)] = n
	}
	return n
}

// pendingInsts returns the instructions that wait for a character between
// the previous one and r, unless the expression matches there.
func (a *automaton) pendingInsts(from state, r rune) (pcs []uint32, match bool) {
	// between the previous character and r; the end of a line counts as the end of the text
	holds := syntax.EmptyNoWordBoundary
	if (from.prev == prevWord) != isWordRune(r) {
		holds = syntax.EmptyWordBoundary
	}
	if from.prev == prevNone {
		holds |= syntax.EmptyBeginLine | syntax.EmptyBeginText
	}
	if r == '\n' {
		holds |= syntax.EmptyEndLine | syntax.EmptyEndText
	}
	clear(a.visited)
	a.pending = append(a.pending[:0], from.pcs...)
	a.pending = append(a.pending, uint32(a.prog.Start))
	for len(a.pending) > 0 {
		pc := a.pending[len(a.pending)-1]
		a.pending = a.pending[:len(a.pending)-1]
		if a.visited[pc] {
			continue
		}
		a.visited[pc] = true
		switch in := &a.prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return nil, true
		case syntax.InstAlt, syntax.InstAltMatch:
			a.pending = append(a.pending, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			a.pending = append(a.pending, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^holds == 0 {
				a.pending = append(a.pending, in.Out)
			}
		case syntax.InstFail:
		default:
			pcs = append(pcs, pc)
		}
	}
	return pcs, false
}

// stateAfter returns the state after r.
func (a *automaton) stateAfter(waiting []uint32, r rune) (s state) {
	for _, pc := range waiting {
		if in := &a.prog.Inst[pc]; in.MatchRune(r) {
			s.pcs = append(s.pcs, in.Out)
		}
	}
	slices.Sort(s.pcs)
	s.pcs = slices.Compact(s.pcs)
	if a.hasWordBounds && isWordRune(r) {
		s.prev = prevWord
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
