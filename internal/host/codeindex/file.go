package codeindex

import (
	"bytes"
	"math"
	"path"
	"slices"
	"strings"

	"coder/internal/host/disk"
)

// Limits per file.
const (
	maxLineBytes        = 1000 // bytes of a line that are read
	maxTerms            = 1000 // terms of a section
	sniffLen            = 8000 // bytes read to detect binary files
	minGeneratedLineLen = 300  // average line length of generated code
	headLen             = 2000 // bytes searched for a "generated" notice
	nameWeight          = 8    // weight of a term in a declared name
	ownerWeight         = 3    // weight of a term in the owner type's name
	docWeight           = 2    // weight of a term in the comment above
	baseWeight          = 3    // weight of a term in the file's name
	dirWeight           = 1    // weight of a term in the directory names
)

// indexedFile is the index of one file.
type indexedFile struct {
	path   string
	name   string     // the path within its tree
	stamp  disk.Stamp // stamp when read, or zero if not read
	chunks []codeSection
	// postingKeys are the terms of the sections, sorted: the term's hash, the section's number, and the term's
	// weight in it.
	postingKeys []uint64
	tokens      int     // words in all sections
	prior       float32 // relevance of such a file, see role
	role        fileRole
}

// codeSection is the index of one section. Lines count from one.
type codeSection struct {
	symbol         string
	kind           Kind
	doc, line, end int32
	tokens         int32
	continued      bool // not the first piece of a long section
}

func postingKey(term uint32, section int, weight uint8) uint64 {
	return uint64(term)<<32 | uint64(section)<<8 | uint64(weight)
}

// postings returns the keys of a term.
func (f *indexedFile) postings(term uint32) []uint64 {
	from, _ := slices.BinarySearch(f.postingKeys, uint64(term)<<32)
	to := from
	for to < len(f.postingKeys) && f.postingKeys[to]>>32 == uint64(term) {
		to++
	}
	return f.postingKeys[from:to]
}

// fileIndexer indexes files.
type fileIndexer struct {
	*lexicon
	weights        []uint8        // term number → weight in the current section
	lastSection    []uint32       // term number → section where it was last seen
	currentSection uint32         // current section, counted over all files
	sectionTerms   []uint32       // term numbers in the current section
	pathTerms      []weightedTerm // terms in the path of the current file
	keys           []uint64
	lines          [][]byte
}

type weightedTerm struct {
	id     uint32
	weight uint8
}

func newFileIndexer() *fileIndexer { return &fileIndexer{lexicon: newLexicon()} }

// indexFile fills f from its content. Binary and generated files have no sections.
func (r *fileIndexer) indexFile(f *indexedFile, data []byte) {
	f.role = roleOf(f.name, data[:min(len(data), headLen)])
	f.prior = f.role.priorWeight()
	if bytes.IndexByte(data[:min(len(data), sniffLen)], 0) >= 0 {
		return
	}
	r.lines = appendLines(r.lines[:0], data)
	if len(data)/max(len(r.lines), 1) > minGeneratedLineLen && f.role&roleProse == 0 {
		return
	}
	r.keys = r.keys[:0]
	dir, base := path.Split(f.name)
	r.pathTerms = r.pathTerms[:0]
	for _, part := range []struct {
		name   string
		weight uint8
	}{{strings.TrimSuffix(base, path.Ext(base)), baseWeight}, {dir, dirWeight}} {
		text := []byte(part.name)
		eachWord(text[:min(len(text), maxLineBytes)], func(word []byte) {
			h := uint64(hashSeed)
			for _, c := range word {
				h = (h ^ uint64(c)) * hashPrime
			}
			for _, id := range r.lookup(h, word) {
				r.pathTerms = append(r.pathTerms, weightedTerm{id, part.weight})
			}
		})
	}
	for _, s := range splitSections(f.name, r.lines) {
		for s.end > s.line+1 && len(bytes.TrimSpace(r.lines[s.end-1])) == 0 {
			s.end--
		}
		r.currentSection++
		r.sectionTerms = r.sectionTerms[:0]
		tokens := 0
		for i := s.docStart; i < s.end; i++ {
			weight := uint8(1)
			if i < s.line {
				weight = docWeight
			}
			tokens += r.countTerms(r.lines[i], weight)
		}
		if tokens == 0 && s.symbol == "" {
			continue
		}
		if owner, _, ok := cutLast(s.symbol, "."); ok && s.names != nil {
			r.countTerms([]byte(owner), ownerWeight)
		}
		for _, name := range s.names {
			r.countTerms([]byte(name), nameWeight)
			if r.parts = appendParts(r.parts[:0], name); len(r.parts) > 1 {
				r.addWeight(r.termNumber(hashTerm(joinName(name))), nameWeight)
			}
		}
		for _, t := range r.pathTerms {
			r.addWeight(t.id, t.weight)
		}
		for _, id := range r.sectionTerms {
			r.keys = append(r.keys, postingKey(r.terms[id], len(f.chunks), r.weights[id]))
		}
		f.tokens += tokens
		f.chunks = append(f.chunks, codeSection{
			symbol: s.symbol, kind: s.kind, tokens: int32(tokens),
			doc: int32(s.docStart + 1), line: int32(s.line + 1), end: int32(s.end), continued: s.isContinuation,
		})
	}
	if len(f.chunks) > 0 {
		slices.Sort(r.keys)
		f.postingKeys = slices.Clone(r.keys)
	}
	f.chunks = slices.Clip(f.chunks)
	if r.used >= maxSlots/2 {
		*r = *newFileIndexer()
	}
}

func appendLines(lines [][]byte, data []byte) [][]byte {
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		lines = append(lines, bytes.TrimSuffix(line, []byte("\r")))
		data = rest
	}
	return lines
}

// countTerms counts the terms of a line and returns their number. It does what [eachWord] does, and hashes at
// the same time.
func (r *fileIndexer) countTerms(line []byte, weight uint8) (count int) {
	line = line[:min(len(line), maxLineBytes)]
	for i := 0; i < len(line); {
		if !isWordByte[line[i]] {
			i++
			continue
		}
		from, h := i, uint64(hashSeed)
		for i < len(line) && isWordByte[line[i]] {
			h = (h ^ uint64(line[i])) * hashPrime
			i++
		}
		ids := r.lookup(h, line[from:i])
		for _, id := range ids {
			r.addWeight(id, weight)
		}
		count += len(ids)
	}
	return count
}

func (r *fileIndexer) addWeight(id uint32, weight uint8) {
	if int(id) >= len(r.lastSection) {
		r.lastSection = append(r.lastSection, make([]uint32, int(id)+1-len(r.lastSection))...)
		r.weights = append(r.weights, make([]uint8, int(id)+1-len(r.weights))...)
	}
	if r.lastSection[id] != r.currentSection {
		if len(r.sectionTerms) >= maxTerms && weight == 1 {
			return
		}
		r.lastSection[id], r.weights[id] = r.currentSection, 0
		r.sectionTerms = append(r.sectionTerms, id)
	}
	if r.weights[id] <= math.MaxUint8-weight {
		r.weights[id] += weight
	}
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+len(sep):], true
}

// lexicon caches the terms of words, since most words of a file also occur in the previous one. It
// identifies a word by a 64-bit hash; a collision is practically impossible.
type lexicon struct {
	slots []slot // a power of two in size, at least half free
	used  int
	ids   []uint32 // term numbers of all words

	numbers []uint32 // term → its number plus one, or 0; a power of two in size, at least half free
	terms   []uint32 // number → term

	parts, results []string // scratch space for splitting words
}

// slot is a word; a zero hash marks a free slot.
type slot struct {
	hash     uint64
	from, to uint32 // range of its terms in ids
}

const (
	initialSlots = 1 << 12
	maxSlots     = 1 << 18 // the lexicon is full at half of these
)

func newLexicon() *lexicon {
	return &lexicon{slots: make([]slot, initialSlots), numbers: make([]uint32, initialSlots)}
}

// The standard constants of the FNV-1a hash.
const (
	hashSeed  = 14695981039346656037
	hashPrime = 1099511628211
)

// lookup returns the term numbers of a word with hash h.
func (l *lexicon) lookup(h uint64, word []byte) []uint32 {
	h |= 1
	for i := l.findSlot(h); ; i = (i + 1) & (len(l.slots) - 1) {
		switch s := &l.slots[i]; s.hash {
		case h:
			return l.ids[s.from:s.to]
		case 0:
			if 2*l.used >= len(l.slots) {
				old := l.slots
				l.slots = make([]slot, 2*len(old))
				for _, s := range old {
					if s.hash != 0 {
						l.insert(s)
					}
				}
			}
			s := slot{hash: h, from: uint32(len(l.ids))}
			l.parts = appendParts(l.parts[:0], string(word))
			l.results = appendTerms(l.results[:0], l.parts)
			for _, t := range l.results {
				l.ids = append(l.ids, l.termNumber(hashTerm(t)))
			}
			s.to = uint32(len(l.ids))
			l.insert(s)
			l.used++
			return l.ids[s.from:s.to]
		}
	}
}

// findSlot returns the slot for hash h. Similar words have similar hashes; the multiplication scatters
// them.
func (l *lexicon) findSlot(h uint64) int {
	const golden = 0x9e3779b97f4a7c15
	return int(h*golden>>40) & (len(l.slots) - 1)
}

func (l *lexicon) insert(s slot) {
	i := l.findSlot(s.hash)
	for l.slots[i].hash != 0 {
		i = (i + 1) & (len(l.slots) - 1)
	}
	l.slots[i] = s
}

// termNumber returns the number of a term, counted from zero without gaps. Terms are hashes, so they are
// already scattered.
func (l *lexicon) termNumber(term uint32) uint32 {
	if 2*len(l.terms) >= len(l.numbers) {
		l.numbers = make([]uint32, 2*len(l.numbers))
		for id, t := range l.terms {
			l.numbers[l.findNumber(t)] = uint32(id) + 1
		}
	}
	at := l.findNumber(term)
	if l.numbers[at] == 0 {
		l.terms = append(l.terms, term)
		l.numbers[at] = uint32(len(l.terms))
	}
	return l.numbers[at] - 1
}

// findNumber returns the position of a term's number, or the free one for it.
func (l *lexicon) findNumber(term uint32) int {
	last := len(l.numbers) - 1
	at := int(term) & last
	for l.numbers[at] != 0 && l.terms[l.numbers[at]-1] != term {
		at = (at + 1) & last
	}
	return at
}
