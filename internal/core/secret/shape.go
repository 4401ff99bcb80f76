package secret

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"

	"coder/internal/core/lists"
)

// shape describes keys of one sort: their prefix and what follows it.
type shape struct {
	prefix string
	// returns how many bytes of s belong to the key, or zero; ended if more text cannot change that
	matchRest func(s string) (n int, ended bool)
}

//go:embed data/shapes.txt
var shapeListText string

// restMatchers maps a section of the list to a matcher for what follows the prefix.
var restMatchers = map[string]func(least int) func(string) (int, bool){
	"letters": runMatcher(letterBytes), "dashed": runMatcher(dashedBytes), "dotted": runMatcher(dottedBytes),
	"base64": runMatcher(base64Bytes), "slashed": runMatcher(slashedBytes),
	"mixed":       func(least int) func(string) (int, bool) { return matchRandom(dashedBytes, least) },
	"hexadecimal": func(n int) func(string) (int, bool) { return matchExactly(hexDigits, n) },
	"exactly":     func(n int) func(string) (int, bool) { return matchExactly(dashedBytes, n) },
}

func runMatcher(of *byteSet) func(least int) func(string) (int, bool) {
	return func(least int) func(string) (int, bool) { return matchRun(of, least) }
}

// shapeList holds all shapes, also by first byte.
type shapeList struct {
	all         []shape
	byFirstByte [256][]shape
}

// loadShapes are those of keys from well-known services. No ordinary word has such a shape.
var loadShapes = sync.OnceValue(func() *shapeList {
	l := new(shapeList)
	for section, entry := range lists.Entries(shapeListText) {
		prefix, count, _ := strings.Cut(entry, " ")
		least, err := strconv.Atoi(count)
		if restMatchers[section] == nil || err != nil {
			panic("shapes.txt: " + entry)
		}
		l.all = append(l.all, shape{prefix, restMatchers[section](least)})
	}
	for _, prefix := range []string{"AKIA", "ASIA", "ABIA", "ACCA"} {
		l.all = append(l.all, shape{prefix, matchAWSID})
	}
	for _, prefix := range []string{"MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"} {
		l.all = append(l.all, shape{prefix, matchBotToken})
	}
	l.all = append(l.all, shape{"eyJ", matchWebToken}, shape{pemHeader, matchPrivateKey},
		shape{schemeSeparator, matchAddress})
	for _, k := range l.all {
		l.byFirstByte[k.prefix[0]] = append(l.byFirstByte[k.prefix[0]], k)
	}
	return l
})

// byteSet is a set of bytes.
type byteSet [256]bool

func newByteSet(ranges string) *byteSet {
	var s byteSet
	for i := 0; i+1 < len(ranges); i += 2 {
		for c := int(ranges[i]); c <= int(ranges[i+1]); c++ {
			s[c] = true
		}
	}
	return &s
}

var (
	letterBytes  = newByteSet("AZaz09")
	wordBytes    = newByteSet("AZaz09__")
	dashedBytes  = newByteSet("AZaz09--__")
	dottedBytes  = newByteSet("AZaz09--__..")
	base64Bytes  = newByteSet("AZaz09++//==")
	slashedBytes = newByteSet("AZaz09--__//")
	hexDigits    = newByteSet("09af")
)

// matchRun matches at least "least" bytes of a set.
func matchRun(of *byteSet, least int) func(string) (int, bool) {
	return func(s string) (int, bool) {
		n := runLen(s, of)
		if n < least && !isTruncatedKey(s, n) {
			return 0, n < len(s)
		}
		return n, n < len(s)
	}
}

// isTruncatedKey reports whether the first n bytes of s are what remains of a key in truncated text.
func isTruncatedKey(s string, n int) bool {
	const least = 5
	return n >= least && strings.HasPrefix(s[n:], "…") && strings.ContainsAny(s[:n], "0123456789")
}

// matchRandom matches a run that is not just joined words: at least one part without dashes mixes letters and
// digits.
func matchRandom(of *byteSet, least int) func(string) (int, bool) {
	whole := matchRun(of, least)
	return func(s string) (int, bool) {
		const looked = 96 // a hostile text must not cost more
		n, ended := whole(s[:min(len(s), looked)])
		for part := range strings.FieldsFuncSeq(s[:n], func(r rune) bool { return r == '-' || r == '_' }) {
			if (len(part) >= 8 || n < least) && strings.ContainsAny(part, "0123456789") {
				return whole(s)
			}
		}
		return 0, ended || n == looked
	}
}

func runLen(s string, of *byteSet) (n int) {
	for n < len(s) && of[s[n]] {
		n++
	}
	return n
}

// matchAWSID matches sixteen capitals and digits.
var matchAWSID = matchExactly(newByteSet("AZ09"), 16)

// matchExactly matches exactly want bytes of a set.
func matchExactly(of *byteSet, want int) func(string) (int, bool) {
	return func(s string) (int, bool) {
		n := runLen(s, of)
		if n == want && (len(s) == n || !dashedBytes[s[n]]) || isTruncatedKey(s, n) {
			return n, len(s) > n
		}
		return 0, n < len(s)
	}
}

// mailKeyPrefix is the key prefix of a mail service.
const mailKeyPrefix = "key-"

// botSeparator separates a bot's number from its secret.
const botSeparator = ":AA"

// matchParts matches parts separated by dots, each with a minimum and a maximum length. The maximum bounds
// the cost of hostile text.
func matchParts(parts ...[2]int) func(s string) (n int, ended bool) {
	return func(s string) (n int, ended bool) {
		for i, p := range parts {
			least, most := p[0], p[1]
			m := runLen(s[n:min(len(s), n+most+1)], dashedBytes)
			n += m
			switch {
			case m < least || m > most:
				return 0, m > most || n < len(s)
			case i == len(parts)-1:
				return n, n < len(s)
			case n == len(s):
				return 0, false
			case s[n] != '.':
				return 0, true
			}
			n++
		}
		return 0, true
	}
}

var (
	// matchBotToken matches the rest of a bot's number in base64, then a time and the bot's secret.
	matchBotToken = matchParts([2]int{20, 30}, [2]int{6, 6}, [2]int{27, 48})
	// matchWebToken matches a header, claims and a signature.
	matchWebToken = matchParts([2]int{10, 512}, [2]int{10, 1 << 24}, [2]int{10, 1 << 24})
)

// pemHeader begins the first line of a private key, and of other PEM files.
const pemHeader = "-----BEGIN "

// matchPrivateKey matches a private key as in a file, to its last line, or to the last line of the key
// present. Lines may be numbered, quoted or joined. Any other text between lines is not part of a key,
// so that nothing can hide in one.
func matchPrivateKey(s string) (int, bool) {
	const longestHeader, looked = 60, 200
	head := strings.Index(s[:min(len(s), longestHeader)], "-----")
	if head < 0 {
		return 0, len(s) >= longestHeader
	}
	if !strings.Contains(s[:head], "PRIVATE KEY") {
		return 0, true
	}
	n, body, short := head+len("-----"), 0, false // body is where the last line of the key itself ends
	for {
		n += keyLineGap(s[n:])
		if end, ok := matchFooter(s[n:]); ok {
			return n + end, true
		}
		run := runLen(s[n:], base64Bytes)
		switch {
		case run == 0 || short || n > max(body, head)+looked:
			return body, n < len(s) && !strings.HasPrefix(pemFooter, s[n:])
		case isKeyLine(s[n : n+run]):
			body = n + run
		case !isNumber(s[n : n+run]):
			short = true // the last line is short
		}
		n += run
	}
}

// keyLineGap returns how much of s separates two lines of a key, including the key's own headers.
func keyLineGap(s string) (n int) {
	for n < len(s) {
		switch {
		case strings.IndexByte(" \t\r\n\"',\\", s[n]) >= 0:
			if s[n] == '\\' && n+1 < len(s) && strings.IndexByte("nrt", s[n+1]) >= 0 {
				n++
			}
			n++
		case strings.HasPrefix(s[n:], "Proc-Type: 4,ENCRYPTED"):
			n += len("Proc-Type: 4,ENCRYPTED")
		case strings.HasPrefix(s[n:], "DEK-Info: "):
			n += len("DEK-Info: ")
			n += runLen(s[n:], dashedBytes)
		case s[n] == '-' && !strings.HasPrefix(s[n:], "--"): // a diff's minus sign
			n++
		default:
			return n
		}
	}
	return n
}

const pemFooter = "-----END "

// matchFooter returns the length of the footer line of a private key at the front of s.
func matchFooter(s string) (n int, ok bool) {
	const longest = 80
	rest, ok := strings.CutPrefix(s[:min(len(s), longest)], pemFooter)
	end := strings.Index(rest, "-----")
	if !ok || end < 0 || !strings.Contains(rest[:end], "PRIVATE KEY") {
		return 0, false
	}
	return len(pemFooter) + end + len("-----"), true
}

// isKeyLine reports whether run looks like a line of a key.
func isKeyLine(run string) bool {
	return len(run) >= 40 && strings.ContainsAny(run, "0123456789") && strings.ToUpper(run) != run &&
		strings.ToLower(run) != run
}

func isNumber(run string) bool { return len(run) <= 6 && strings.Trim(run, "0123456789") == "" }

// findKeyEnd returns, if the footer of a private key is at i, where the rest of the key begins, not before
// from, and the footer's length. The key's beginning may be missing.
func findKeyEnd(s string, from, i int) (begin, n int) {
	n, ok := matchFooter(s[i:])
	if !ok {
		return i, 0
	}
	const looked = 200 // a hostile text must not cost more
	begin = i
	for at := i; at > max(from, begin-looked); {
		start := at
		for start > from && base64Bytes[s[start-1]] {
			start--
		}
		switch run := s[start:at]; {
		case run == "" && strings.IndexByte(" \t\r\n\"',-\\", s[at-1]) >= 0:
			at--
		case isKeyLine(strings.TrimPrefix(strings.TrimPrefix(run, "n"), "r")):
			begin, at = start, start
		case run != "" && (begin == i || isNumber(run) || run == "n" || run == "r"):
			at = start
		default:
			at = from
		}
	}
	if begin == i {
		n = 0 // no part of the key itself
	}
	return begin, n
}

// hasKeyPrefix reports whether s has the prefix of a key.
func hasKeyPrefix(s string) bool {
	return slices.ContainsFunc(loadShapes().all, func(k shape) bool { return strings.HasPrefix(s, k.prefix) })
}

// ShapeConcealer returns a Concealer that masks only text shaped like a key.
var ShapeConcealer = sync.OnceValue(func() *Concealer { return NewConcealer(nil) })

// ReplaceShaped replaces everything in s that is shaped like a key.
func ReplaceShaped(s string, other func(key string) string) string {
	out, _ := ShapeConcealer().current.Load().replaceKeys(s, 0, true,
		func(key string, _ bool) string { return other(key) })
	return out
}
