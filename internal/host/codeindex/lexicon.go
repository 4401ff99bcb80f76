package codeindex

// lexicon remembers the terms of the words a reader has met: most words of a
// file were in the last one too. It knows a word by a hash of 64 bits, so two
// words may be taken for one, but in no tree will this ever happen.
type lexicon struct {
	slots []slot // a power of two of them, at least half of them free
	used  int
	ids   []uint32 // numbers of the terms of all words

	numbers []uint32 // term → its number and one, 0 if it has none; a power of two of them, at least half of them free
	terms   []uint32 // number → term

	parts, found []string // room for taking a word apart
}

// slot is a word; one with a zero hash is free.
type slot struct {
	hash     uint64
	from, to uint32 // its terms in ids
}

const (
	firstSlots = 1 << 12
	maxSlots   = 1 << 18 // when half of them are taken the lexicon is full
)

func newLexicon() *lexicon {
	return &lexicon{slots: make([]slot, firstSlots), numbers: make([]uint32, firstSlots)}
}

// The usual numbers of the hash FNV-1a.
const (
	hashSeed  = 14695981039346656037
	hashPrime = 1099511628211
)

// lookup returns the numbers of the terms of a word, whose hash is h.
func (l *lexicon) lookup(h uint64, word []byte) []uint32 {
	h |= 1
	for i := l.place(h); ; i = (i + 1) & (len(l.slots) - 1) {
		switch s := &l.slots[i]; s.hash {
		case h:
			return l.ids[s.from:s.to]
		case 0:
			if 2*l.used >= len(l.slots) {
				old := l.slots
				l.slots = make([]slot, 2*len(old))
				for _, s := range old {
					if s.hash != 0 {
						l.put(s)
					}
				}
			}
			s := slot{hash: h, from: uint32(len(l.ids))}
			l.parts = parts(l.parts[:0], string(word))
			l.found = terms(l.found[:0], l.parts)
			for _, t := range l.found {
				l.ids = append(l.ids, l.number(hash(t)))
			}
			s.to = uint32(len(l.ids))
			l.put(s)
			l.used++
			return l.ids[s.from:s.to]
		}
	}
}

// place is where a word belongs if the place is free. Similar words have similar
// hashes; the multiplication scatters them.
func (l *lexicon) place(h uint64) int {
	const golden = 0x9e3779b97f4a7c15
	return int(h*golden>>40) & (len(l.slots) - 1)
}

func (l *lexicon) put(s slot) {
	i := l.place(s.hash)
	for l.slots[i].hash != 0 {
		i = (i + 1) & (len(l.slots) - 1)
	}
	l.slots[i] = s
}

// number is the number of a term; they count from zero without gaps. Terms are
// hashes, so they need not be scattered.
func (l *lexicon) number(term uint32) uint32 {
	if 2*len(l.terms) >= len(l.numbers) {
		l.numbers = make([]uint32, 2*len(l.numbers))
		for id, t := range l.terms {
			l.numbers[l.seat(t)] = uint32(id) + 1
		}
	}
	at := l.seat(term)
	if l.numbers[at] == 0 {
		l.terms = append(l.terms, term)
		l.numbers[at] = uint32(len(l.terms))
	}
	return l.numbers[at] - 1
}

// seat is where the number of a term is, or belongs.
func (l *lexicon) seat(term uint32) int {
	last := len(l.numbers) - 1
	at := int(term) & last
	for l.numbers[at] != 0 && l.terms[l.numbers[at]-1] != term {
		at = (at + 1) & last
	}
	return at
}
