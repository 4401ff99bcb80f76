package codeindex

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The bounds of a snippet.
const (
	snippetLines = 10
	snippetLine  = 160 // characters of a line
)

// snippet shows the line that declares and the lines that say most about the
// question.
func (q *question) snippet(lines [][]byte, c chunk) string {
	end := min(int(c.end), len(lines))
	line, doc := min(int(c.line), end), min(int(c.doc), end)
	from := q.densest(lines, doc, end)
	var b strings.Builder
	if from > line {
		number(&b, line, lines[line-1])
		if from++; from > line+1 {
			b.WriteString("…\n")
		}
	}
	for i := from; i < min(from+snippetLines, end+1); i++ {
		number(&b, i, lines[i-1])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// number writes a line with its number, as valid UTF-8 of bearable length.
func number(b *strings.Builder, n int, line []byte) {
	end := 0
	for chars := 0; end < len(line) && chars < snippetLine; chars++ {
		_, size := utf8.DecodeRune(line[end:])
		end += size
	}
	more := ""
	if end < len(line) {
		more = "…"
	}
	fmt.Fprintf(b, "%d: %s%s\n", n, strings.ToValidUTF8(string(line[:end]), "\ufffd"), more)
}

// densest is the first of the lines from doc to end that together say most.
// The beginning is as good as any.
func (q *question) densest(lines [][]byte, doc, end int) int {
	if end-doc < snippetLines {
		return doc
	}
	weights := make([]float32, end+1)
	for i := doc; i <= end; i++ {
		weights[i] = q.weigh(lines[i-1])
	}
	var sum, most float32
	best := doc
	for i := doc; i <= end; i++ {
		sum += weights[i]
		if i-doc >= snippetLines {
			sum -= weights[i-snippetLines]
		}
		const clearly = 1.3 // a later place must be better than this to be shown instead
		if start := i - snippetLines + 1; start == doc || start > doc && sum > most*clearly {
			best, most = start, sum
		}
	}
	return best
}

// weigh is how much a line says about the question: each concept once.
func (q *question) weigh(line []byte) (sum float32) {
	var met uint64
	eachWord(line[:min(len(line), maxLine)], func(word []byte) {
		for _, t := range termsOf(string(word)) {
			h := hash(t)
			for i, c := range q.concepts {
				if met&(1<<i) == 0 && c.shareOf(h) > 0 {
					met |= 1 << i
					sum += c.weight
				}
			}
		}
	})
	return sum
}
