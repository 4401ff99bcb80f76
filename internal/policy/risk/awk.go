package risk

import (
	"slices"
	"strings"
)

var awkOptions = newOptions("bcCghIkMnNOPrsStV", "FvfeEil",
	"field-separator= assign= file= source= exec= include= load= "+
		"posix traditional re-interval sandbox bignum non-decimal-data characters-as-bytes optimize no-optimize lint[=")

// judgeAwk judges a program given as a word. It is read-only only if the program is of the simplest kind.
func (w *walker) judgeAwk(args []arg) bool {
	fs, rest, ok := awkOptions.parseLeading(args[1:])
	if !ok {
		for _, a := range rest {
			w.judgeAwkProgram(a, args)
		}
		return false
	}
	inFile := false
	for _, f := range fs {
		switch f.name {
		case "e", "source":
			inFile = true
			w.judgeAwkProgram(f.value, args)
		case "f", "file", "E", "exec":
			inFile = true
		}
	}
	if inFile || len(rest) == 0 {
		return false
	}
	w.judgeAwkProgram(rest[0], args)
	return allHarmless(fs, "F v field-separator assign") && rest[0].isExact() && awkOnlyPrints(rest[0].text) &&
		!slices.ContainsFunc(rest[1:], func(a arg) bool { // all others are files, or values of variables
			return a.certainty == dynamic || a.isOption() || strings.Contains(a.text, "/inet")
		})
}

// awkOnlyPrints reports whether the text alone shows that a program neither runs nor writes anything:
// output can only go elsewhere after the word print.
func awkOnlyPrints(program string) bool {
	for _, word := range []string{"system", "getline", "@", "ARGV", "\\\n"} {
		if strings.Contains(program, word) {
			return false
		}
	}
	_, after, _ := strings.Cut(program, "print")
	return !strings.ContainsAny(strings.ReplaceAll(after, "||", ""), "|>")
}

func (w *walker) judgeAwkProgram(program arg, args []arg) {
	if !program.isExact() {
		return
	}
	s := awkScan{text: program.text}
	for s.pos < len(s.text) && !s.isAmbiguous {
		c := s.text[s.pos]
		switch {
		case c == ' ' || c == '\t':
			s.pos++
			continue
		case strings.HasPrefix(s.text[s.pos:], "\\\n"):
			s.pos += 2
			continue
		case c == '#':
			if n := strings.IndexByte(s.text[s.pos:], '\n'); n >= 0 {
				s.pos += n
			} else {
				s.pos = len(s.text)
			}
			continue
		case c == '"':
			s.lastQuoted, s.afterOperand, s.maybeOperand = s.readQuoted('"'), true, false
			continue
		case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z':
			from := s.pos
			for s.pos < len(s.text) && (s.text[s.pos] == '_' || s.text[s.pos]|0x20 >= 'a' && s.text[s.pos]|0x20 <= 'z' ||
				s.text[s.pos] >= '0' && s.text[s.pos] <= '9') {
				s.pos++
			}
			word := s.text[from:s.pos]
			s.afterOperand, s.maybeOperand = !awkKeywords.has(word), word == "getline"
			s.expectsCondition = word == "if" || word == "while" || word == "for" || word == "switch"
			switch word {
			case "print", "printf":
				s.printing = true
			case "system":
				s.hasEffects = true
				s.recordCommand(strings.TrimLeft(s.text[s.pos:], " \t("))
			}
		case c >= '0' && c <= '9':
			s.pos, s.afterOperand, s.maybeOperand = s.pos+1, true, false
		default:
			s.readSign(c)
		}
		s.lastQuoted = ""
	}
	if s.isAmbiguous && !awkOnlyPrints(program.text) || s.hasEffects {
		w.addFinding(Approve, "the program runs commands or writes files", joinWords(args))
	}
	for _, line := range s.lines {
		w.judgeLine(arg{text: line})
	}
}

// awkScan scans the words of a program.
type awkScan struct {
	text             string
	pos              int
	hasEffects       bool     // it runs a command or writes a file
	lines            []string // commands it certainly runs
	isAmbiguous      bool     // pattern and division cannot be told apart
	afterOperand     bool     // a value came last: a slash divides
	maybeOperand     bool     // the last word may have been a value
	printing         bool     // > would write
	brackets         []bool   // the open brackets; true if one holds a condition
	expectsCondition bool     // a condition comes next
	lastQuoted       string   // the last quoted text
}

// readQuoted reads up to the next end character.
func (s *awkScan) readQuoted(end byte) string {
	from := s.pos + 1
	class := false
	for s.pos = from; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '\\':
			s.pos++
		case c == end && class:
			s.isAmbiguous = true // implementations differ
			return ""
		case c == end:
			s.pos++
			return s.text[from : s.pos-1]
		case c == '[' && end == '/':
			class = true
		case c == ']':
			class = false
		case c == '\n' && end == '/':
			s.isAmbiguous = true
			return ""
		}
	}
	s.pos = len(s.text)
	s.isAmbiguous = true
	return ""
}

var awkSinks = []string{`"/dev/null"`, `"/dev/stderr"`, `"/dev/stdout"`}

var awkKeywords = wordList("print printf return if while for else do in delete exit case switch BEGIN END function func")

// recordCommand records the command named next, if its name is a literal.
func (s *awkScan) recordCommand(rest string) {
	if strings.HasPrefix(rest, `"`) {
		inner := awkScan{text: rest}
		if line := inner.readQuoted('"'); !inner.isAmbiguous {
			s.lines = append(s.lines, line)
		}
	}
}

func (s *awkScan) readSign(c byte) {
	rest := s.text[s.pos+1:]
	switch c {
	case '/':
		switch {
		case s.maybeOperand:
			s.isAmbiguous = true
		case !s.afterOperand:
			s.readQuoted('/')
			s.afterOperand = true
			return
		}
	case '|':
		if strings.HasPrefix(rest, "|") { // or
			s.pos++
			break
		}
		s.hasEffects = true
		rest = strings.TrimLeft(strings.TrimPrefix(rest, "&"), " \t")
		if strings.HasPrefix(rest, "getline") && s.lastQuoted != "" {
			s.lines = append(s.lines, s.lastQuoted)
		}
		s.recordCommand(rest)
	case '>': // a comparison, except while printing
		to := strings.TrimLeft(rest, "> \t")
		sink := slices.ContainsFunc(awkSinks, func(name string) bool { return strings.HasPrefix(to, name) })
		s.hasEffects = s.hasEffects || !strings.HasPrefix(rest, "=") && s.printing && len(s.brackets) == 0 && !sink
	case '(':
		s.brackets = append(s.brackets, s.expectsCondition)
	case ')':
		condition := false
		if n := len(s.brackets); n > 0 {
			condition = s.brackets[n-1]
			s.brackets = s.brackets[:n-1]
		}
		s.pos, s.afterOperand, s.maybeOperand = s.pos+1, !condition, false
		return
	case ']':
		s.pos, s.afterOperand, s.maybeOperand = s.pos+1, true, false
		return
	case '+', '-':
		s.maybeOperand = strings.HasPrefix(rest, string(c))
		if s.maybeOperand {
			s.pos++
		}
		s.pos, s.afterOperand = s.pos+1, false
		return
	case '\n':
		s.printing = s.printing && !s.afterOperand
	case ';', '{', '}':
		s.printing = false
	case '@':
		s.hasEffects = true
	}
	s.pos, s.afterOperand, s.maybeOperand, s.expectsCondition = s.pos+1, false, false, false
}
