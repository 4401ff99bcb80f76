package codeindex

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"
)

// Limits of a query.
const (
	maxQuery         = 2000 // bytes of a query that are read
	maxConcepts      = 24   // concepts in a query
	synonymShare     = 0.6  // weight of a synonym, relative to the word
	weakShare        = 0.35 // weight of a filler word
	pairShare        = 0.5  // weight of a name joined from two words
	maxGlossaryEntry = 24   // longest entry of the glossary, in bytes
)

// parsedQuery is a parsed query.
type parsedQuery struct {
	concepts   []concept
	optional   []concept // optional concepts
	wantsTests bool      // the query is about tests
}

// concept is one thing that a query is about, with all words for it.
type concept struct {
	terms  []searchTerm
	weight float32 // set when ranking: how specific the concept is
}

type searchTerm struct {
	term  uint32
	share float32
}

func parseQuery(text string) *parsedQuery {
	text = strings.ToValidUTF8(text[:min(len(text), maxQuery)], " ")
	q := &parsedQuery{}
	seen := make(map[string]bool)
	words, weak := queryWords(text)
	if len(words) == 0 {
		words, weak = weak, nil
	}
	for _, w := range weak {
		q.addOptional(stem(w), weakShare)
	}
	for i, w := range words {
		if !seen[stem(w)] && len(q.concepts) < maxConcepts {
			q.concepts = append(q.concepts, newConcept(w))
		}
		seen[stem(w)] = true
		if i > 0 {
			q.addOptional(words[i-1]+w, pairShare)
		}
	}
	if len(q.concepts) > 0 {
		eachWord([]byte(text), func(w []byte) {
			if name := string(w); len(appendParts(nil, name)) > 1 && isASCII(name) {
				q.addOptional(joinName(name), pairShare)
			}
		})
		for rest := text; rest != ""; {
			_, size := utf8.DecodeRuneInString(rest)
			for n := min(len(rest), maxGlossaryEntry); n > size; n-- {
				if english, ok := glossary()[rest[:n]]; ok {
					q.concepts = append(q.concepts, newConcept(strings.Fields(english)...))
					size = n
					break
				}
			}
			rest = rest[size:]
		}
		q.concepts = q.concepts[:min(len(q.concepts), 2*maxConcepts)]
	}
	q.wantsTests = seen[stem("test")] || seen[stem("benchmark")] || seen[stem("fixture")] || strings.Contains(text, "测试")
	return q
}

// queryWords returns the words that say what a query is about, and those that may (weak), in lower case.
// Numbers and character pairs also count as words.
func queryWords(text string) (words, weak []string) {
	eachWord([]byte(text), func(raw []byte) {
		all := appendParts(nil, string(raw))
		for i, p := range all {
			switch {
			case isUnspaced(p):
				words = append(words, bigrams(p)...)
			case i+1 < len(all) && isDigits(all[i+1]):
				words = append(words, p+all[i+1]) // utf8
			case isDigits(p) && i > 0 && !isUnspaced(all[i-1]): // already joined to the word before
			case fillerWords()[p]:
				weak = append(weak, p)
			case len(p) > 1 && !stopWords()[p]:
				words = append(words, p)
			}
		}
	})
	return words, weak
}

// addOptional adds an optional term.
func (q *parsedQuery) addOptional(term string, share float32) {
	if len(q.optional) < 2*maxConcepts {
		q.optional = append(q.optional, concept{terms: []searchTerm{{hashTerm(term), share}}})
	}
}

// newConcept returns the concept of a word and its synonyms.
func newConcept(words ...string) (c concept) {
	for _, w := range words {
		c.add(stem(w), 1)
	}
	for _, w := range words {
		for _, s := range synonyms()[stem(w)] {
			c.add(s, synonymShare)
		}
	}
	return c
}

func (c *concept) add(term string, share float32) {
	h := hashTerm(term)
	for _, o := range c.terms {
		if o.term == h {
			return
		}
	}
	c.terms = append(c.terms, searchTerm{h, share})
}

// shareOf returns how well a term matches the concept, or 0.
func (c concept) shareOf(term uint32) float32 {
	for _, o := range c.terms {
		if o.term == term {
			return o.share
		}
	}
	return 0
}

//go:embed synonyms.txt
var synonymText string

//go:embed glossary.txt
var glossaryText string

// synonyms maps a term to equivalent terms in programs.
var synonyms = sync.OnceValue(func() map[string][]string {
	m := make(map[string][]string)
	for line := range strings.Lines(synonymText) {
		var group []string
		for w := range strings.FieldsSeq(line) {
			group = append(group, stem(w))
		}
		for _, w := range group {
			for _, s := range group {
				if s != w {
					m[w] = append(m[w], s)
				}
			}
		}
	}
	return m
})

// glossary translates words of other languages into English.
var glossary = sync.OnceValue(func() map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(glossaryText) {
		if word, english, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			m[word] = english
		}
	}
	return m
})
