// Package catalogue knows the context window, price and abilities of well-known models. It is a small table
// that goes out of date: the user's own figures take precedence, and unknown figures are marked as unknown.
package catalogue

import (
	"cmp"
	_ "embed"
	"iter"
	"strconv"
	"strings"
	"sync/atomic"
)

// CheckedMonth is the month the table was last checked.
const CheckedMonth = "2026-11"

// DefaultContext is the assumed context window of an unknown model, in tokens.
const DefaultContext = 128000

// Model describes a model. A zero figure is unknown.
type Model struct {
	Name      string // the name of the entry, perhaps shorter than the requested name
	Context   int    // tokens of a request and its reply together
	Output    int    // tokens of a reply
	Price     Price
	Vision    bool
	Tools     bool
	Reasoning bool

	Refuses     []string // request parameters that it rejects: temperature, max_tokens, stop, tools
	Efforts     []string // supported levels of effort, the lowest first; none if it has no levels
	Temperature *float64 // recommended by its maker; nil if none is
	Guessed     bool     // Context is the default for unknown models
}

// Price is in US dollars per million tokens.
type Price struct {
	In, Out    float64
	CachedIn   float64 // zero if unknown: cached tokens then cost as much as others
	CacheWrite float64 // for tokens written to the cache; zero: as In
	Known      bool
}

// Cost returns the cost of a reply in US dollars, and whether it is known. Of the in tokens, cached
// came from the provider's cache and written were written to it.
func (p Price) Cost(in, cached, written, out int) (usd float64, ok bool) {
	if !p.Known {
		return 0, false
	}
	cached = min(max(cached, 0), in)
	written = min(max(written, 0), in-cached)
	usd = float64(in-cached-written)*p.In + float64(cached)*cmp.Or(p.CachedIn, p.In) +
		float64(written)*cmp.Or(p.CacheWrite, p.In) + float64(out)*p.Out
	return usd / 1e6, true
}

// Lookup finds the model called name, which may have a provider's prefix (openai/…,
// openrouter/anthropic/…) and a date or other suffix. own are the user's entries; they follow the same
// rule and take precedence, and the table fills in what they leave out. An unknown model has the
// default context and no price, and is assumed to support tool calls.
func Lookup(name string, own ...Model) (Model, bool) {
	mine, isMine := longestPrefix(name, func(yield func(string, Model) bool) {
		for _, m := range own {
			if !yield(m.Name, m) {
				return
			}
		}
	})
	known, isKnown := findBuiltin(name)
	if !isKnown {
		known = Model{Name: name, Tools: true}
	}
	m := known
	if isMine { // the table fills in what it leaves out
		m = mine
		m.Context, m.Output = cmp.Or(m.Context, known.Context), cmp.Or(m.Output, known.Output)
		if !m.Price.Known && m.Price.In == 0 && m.Price.Out == 0 {
			m.Price = known.Price
		}
		m.Price.Known = m.Price.Known || m.Price.In > 0 || m.Price.Out > 0
		m.Vision = m.Vision || known.Vision
		m.Tools = m.Tools || known.Tools
		m.Reasoning = m.Reasoning || known.Reasoning
		if m.Refuses == nil {
			m.Refuses = known.Refuses
		}
		if m.Efforts == nil {
			m.Efforts = known.Efforts
		}
		m.Temperature = cmp.Or(m.Temperature, known.Temperature)
	}
	m.Guessed = m.Context == 0
	m.Context = cmp.Or(m.Context, DefaultContext)
	if strings.HasSuffix(name, ":free") {
		m.Price = Price{Known: true}
	}
	return m, isMine || isKnown
}

// HasModel reports whether the table has a model.
func HasModel(name string) bool {
	_, ok := findBuiltin(name)
	return ok
}

// Newest returns the newest built-in model whose name starts with prefix, or "".
func Newest(prefix string) (newest string) {
	for name := range tableRows {
		if strings.HasPrefix(name, prefix) {
			newest = name // the table has the oldest first
		}
	}
	return newest
}

// longestPrefix returns the entry with the longest name that is a prefix of name.
func longestPrefix[E any](name string, list iter.Seq2[string, E]) (found E, ok bool) {
	length := -1
	for _, variant := range variants(normalizeName(name)) {
		for its, one := range list {
			if key := normalizeName(its); len(key) > length && matchesKey(variant, key) {
				found, ok, length = one, true, len(key)
			}
		}
	}
	return found, ok
}

// normalizeName returns a name without spelling differences between
// providers: claude-3.5-sonnet and claude-3-5-sonnet become equal.
func normalizeName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '_' {
			return '-'
		}
		return r
	}, strings.ToLower(strings.TrimSpace(name)))
}

// variants returns name itself, and name without the prefixes before
// each slash or before the maker's name as some clouds write it.
func variants(name string) []string {
	list := []string{name}
	for rest := name; ; {
		_, after, ok := strings.Cut(rest, "/")
		if !ok {
			break
		}
		rest = after
		list = append(list, rest)
	}
	if _, after, ok := strings.Cut(list[len(list)-1], "anthropic-"); ok {
		list = append(list, after)
	}
	return list
}

// matchesKey reports whether name is key, or key with a suffix. A suffix that looks like the next part of a
// version number means another model: claude-opus-4-6 is not a claude-opus-4.
func matchesKey(name, key string) bool {
	rest, ok := strings.CutPrefix(name, key)
	switch {
	case !ok || key == "":
		return false
	case rest == "" || rest[0] == ':' || rest[0] == '@':
		return true
	case rest[0] != '-':
		return false
	}
	part, _, _ := strings.Cut(rest[1:], "-")
	part, _, _ = strings.Cut(part, ":")
	_, err := strconv.Atoi(part)
	return part != "" && (err != nil || len(part) > 2)
}

//go:embed models.txt
var tableText string

// tableRows yields the lines of the built-in table with their name
// prefixes. Only the requested line is parsed further.
func tableRows(yield func(name, line string) bool) {
	for line := range strings.Lines(tableText) {
		name, _, ok := strings.Cut(line, "|")
		if ok && line[0] != '#' && !yield(strings.TrimSpace(name), line) {
			return
		}
	}
}

// findBuiltin finds a model in the built-in table.
func findBuiltin(name string) (Model, bool) {
	if f := lastFound.Load(); f != nil && f.name == name {
		return f.model, f.ok
	}
	f := &found{name: name}
	line, ok := longestPrefix(name, tableRows)
	if f.ok = ok; ok {
		f.model = parseRow(line)
	}
	lastFound.Store(f)
	return f.model, f.ok
}

// found is the result of a search of the table. Nobody changes its model's lists.
type found struct {
	name  string
	model Model
	ok    bool
}

// lastFound is the last search: a session asks for one model again and again.
var lastFound atomic.Pointer[found]

// parseRow parses a line of the table.
func parseRow(line string) Model {
	cells := strings.Split(strings.TrimSpace(line), "|")
	prices, can := strings.Fields(cells[3]), cells[4]
	m := Model{
		Name: strings.TrimSpace(cells[0]), Context: int(parseNumber(cells[1])), Output: int(parseNumber(cells[2])),
		Price: Price{
			In: parseNumber(prices[0]), Out: parseNumber(prices[1]), CachedIn: parseNumber(prices[2]),
			CacheWrite: parseNumber(prices[3]),
			Known:      prices[0] != "-" && prices[1] != "-",
		},
		Vision: strings.Contains(can, "v"), Tools: strings.Contains(can, "t"), Reasoning: strings.Contains(can, "r"),
		Refuses: parseWords(cells[5]), Efforts: parseWords(cells[6]),
	}
	if t, err := strconv.ParseFloat(strings.TrimSpace(cells[7]), 64); err == nil {
		m.Temperature = &t
	}
	return m
}

// parseNumber parses a figure; an unknown figure is zero.
func parseNumber(s string) float64 {
	n, _ := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return n
}

// parseWords returns the words of a cell, none if the cell is unknown.
func parseWords(s string) []string {
	if strings.TrimSpace(s) == "-" {
		return nil
	}
	return strings.Fields(s)
}
