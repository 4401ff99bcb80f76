package codeindex

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Weights of the ranking. The first two are the usual BM25 parameters: how soon repetitions of a word
// stop counting, and how much length matters.
const (
	saturation        = 1.6
	lengthShare       = 0.5
	minCoverageFactor = 0.35 // share of the score without any other word
	nameBonus         = 1.0  // for a name equal to the query
	textPrior         = 0.7  // for text before the first declaration
	valuePrior        = 0.8  // for values: lists that mention much
	piecePrior        = 0.85 // for later pieces of a long section
	maxCandidates     = 300  // sections compared by name
	maxHitsPerFile    = 3    // maximum number of hits per file
	maxHits           = 100
)

type match struct {
	file  *indexedFile
	chunk int
	score float32
}

func (s *snapshot) rank(ask *parsedQuery, under string, limit int) []match {
	b := &scoreboard{
		snapshot: s, under: under,
		score: make([]float32, s.chunks), coverage: make([]float32, s.chunks), current: make([]float32, s.chunks),
	}
	for i := range ask.concepts {
		b.addConcept(&ask.concepts[i], true)
	}
	for i := range ask.optional {
		b.addConcept(&ask.optional[i], false)
	}
	found := b.best(ask)
	for i := range found {
		found[i].score *= 1 + nameBonus*ask.nameSimilarity(found[i].file.chunks[found[i].chunk].symbol)
	}
	var list []match
	count := make(map[*indexedFile]int)
	for _, m := range sortMatches(found) {
		if len(list) == min(limit, maxHits) {
			break
		}
		if count[m.file]++; count[m.file] <= maxHitsPerFile {
			list = append(list, m)
		}
	}
	return list
}

// sortMatches sorts by score, best first; the sort is stable.
func sortMatches(list []match) []match {
	slices.SortStableFunc(list, func(a, b match) int { return cmp.Compare(b.score, a.score) })
	return list
}

// scoreboard holds the scores of a snapshot's sections.
type scoreboard struct {
	*snapshot
	under        string
	score        []float32
	coverage     []float32 // total weight of the concepts in a section
	total        float32   // total weight of all concepts
	current      []float32 // score for the current concept
	postingLists []postings
}

// postings are the sections of one file with a term.
type postings struct {
	file  int
	share float32
	keys  []uint64
}

// addConcept adds the score of one concept to every section. A section's best word for the concept counts.
func (b *scoreboard) addConcept(c *concept, counts bool) {
	met := 0
	b.postingLists = b.postingLists[:0]
	for i, f := range b.files {
		for _, o := range c.terms {
			if keys := f.postings(o.term); len(keys) > 0 {
				b.postingLists = append(b.postingLists, postings{i, o.share, keys})
				met += len(keys)
			}
		}
	}
	met = min(met, b.chunks)
	if c.weight = 0; met == 0 {
		return // a word that occurs nowhere is ignored
	}
	n := float64(b.chunks)
	c.weight = float32(math.Log(1 + (n-float64(met)+0.5)/(float64(met)+0.5)))
	if counts {
		b.total += c.weight
	}
	average := float32(b.tokens) / float32(max(b.chunks, 1))
	for _, p := range b.postingLists {
		f := b.files[p.file]
		for _, k := range p.keys {
			section := int(k >> 8 & 0xffffff)
			tf := float32(k & 0xff)
			norm := saturation * (1 - lengthShare + lengthShare*float32(f.chunks[section].tokens)/average)
			i := b.firstSections[p.file] + section
			b.current[i] = max(b.current[i], p.share*c.weight*tf*(saturation+1)/(tf+norm))
		}
	}
	for _, p := range b.postingLists {
		for _, k := range p.keys {
			i := b.firstSections[p.file] + int(k>>8&0xffffff)
			if b.current[i] == 0 {
				continue
			}
			b.score[i] += b.current[i]
			if counts {
				b.coverage[i] += p.share * c.weight
			}
			b.current[i] = 0
		}
	}
}

// best returns the sections with a score, weighted by how many concepts they cover and by their file and
// kind.
func (b *scoreboard) best(ask *parsedQuery) []match {
	var list []match  // the best so far, up to twice the number considered
	var floor float32 // the score that a section must exceed
	for i, f := range b.files {
		if b.under != "" && b.under != "." && f.path != b.under && !strings.HasPrefix(f.path, b.under+"/") {
			continue
		}
		prior := f.prior
		if ask.wantsTests {
			prior = (f.role &^ roleTest).priorWeight()
		}
		for c := range f.chunks {
			n := b.firstSections[i] + c
			if b.score[n] == 0 {
				continue
			}
			cover := b.coverage[n] / max(b.total, 1e-6)
			kind := float32(1)
			switch c := f.chunks[c]; {
			case c.kind == KindText && c.symbol == "":
				kind = textPrior
			case c.continued:
				kind = piecePrior
			case c.kind == KindValue:
				kind = valuePrior
			}
			score := b.score[n] * prior * kind * (minCoverageFactor + (1-minCoverageFactor)*cover*cover)
			if score <= floor {
				continue
			}
			if list = append(list, match{f, c, score}); len(list) == 2*maxCandidates {
				list = sortMatches(list)[:maxCandidates]
				floor = list[maxCandidates-1].score
			}
		}
	}
	return sortMatches(list)[:min(len(list), maxCandidates)]
}

// nameSimilarity returns how closely a symbol matches the query: 1 if both have the same words.
func (q *parsedQuery) nameSimilarity(symbol string) float32 {
	owner, own, _ := cutLast(symbol, ".")
	names := termHashes(own)
	if len(names) == 0 {
		return 0
	}
	all := append(termHashes(owner), names...)
	var asked, total, fits float32
	for _, c := range q.concepts {
		total += c.weight
		var share float32
		for _, t := range all {
			share = max(share, c.shareOf(t))
		}
		asked += c.weight * share
	}
	for _, n := range names {
		var best float32
		for _, c := range q.concepts {
			best = max(best, c.shareOf(n))
		}
		fits += best
	}
	return asked / max(total, 1e-6) * fits / float32(len(names))
}

// termHashes returns the hashed terms of a name.
func termHashes(name string) (list []uint32) {
	for _, t := range termsOf(name) {
		list = append(list, hashTerm(t))
	}
	return list
}

// Limits of a snippet.
const (
	snippetLines     = 10
	snippetLineChars = 160 // characters per line
)

// snippet returns the declaring line and the lines that match the question best.
func (q *parsedQuery) snippet(lines [][]byte, c codeSection) string {
	end := min(int(c.end), len(lines))
	line, doc := min(int(c.line), end), min(int(c.doc), end)
	from := q.bestStart(lines, doc, end)
	var b strings.Builder
	if from > line {
		writeNumbered(&b, line, lines[line-1])
		if from++; from > line+1 {
			b.WriteString("…\n")
		}
	}
	for i := from; i < min(from+snippetLines, end+1); i++ {
		writeNumbered(&b, i, lines[i-1])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// writeNumbered writes a line with its number, as valid UTF-8 of limited length.
func writeNumbered(b *strings.Builder, n int, line []byte) {
	end := 0
	for chars := 0; end < len(line) && chars < snippetLineChars; chars++ {
		_, size := utf8.DecodeRune(line[end:])
		end += size
	}
	more := ""
	if end < len(line) {
		more = "…"
	}
	fmt.Fprintf(b, "%d: %s%s\n", n, strings.ToValidUTF8(string(line[:end]), "\ufffd"), more)
}

// bestStart returns the start of the lines from doc to end that match best. On a near tie, it prefers the
// beginning.
func (q *parsedQuery) bestStart(lines [][]byte, doc, end int) int {
	if end-doc < snippetLines {
		return doc
	}
	weights := make([]float32, end+1)
	for i := doc; i <= end; i++ {
		line := lines[i-1]
		var met uint64 // bit set of concepts, each counted once
		eachWord(line[:min(len(line), maxLineBytes)], func(word []byte) {
			for _, h := range termHashes(string(word)) {
				for j, c := range q.concepts {
					if met&(1<<j) == 0 && c.shareOf(h) > 0 {
						met |= 1 << j
						weights[i] += c.weight
					}
				}
			}
		})
	}
	var sum, most float32
	best := doc
	for i := doc; i <= end; i++ {
		sum += weights[i]
		if i-doc >= snippetLines {
			sum -= weights[i-snippetLines]
		}
		const clearly = 1.3 // a later place must be this much better
		if start := i - snippetLines + 1; start == doc || start > doc && sum > most*clearly {
			best, most = start, sum
		}
	}
	return best
}
