package risk

import (
	"slices"
	"strings"
)

var awkOptions = known("bcCghIkMnNOPrsStV", "FvfeEil", "field-separator= assign= file= source= exec= include= load= "+
	"posix traditional re-interval sandbox bignum non-decimal-data characters-as-bytes optimize no-optimize lint[=")

// awk judges a program given as a word. It is read-only only if the program is of the simplest kind.
func (w *walker) awk(args []arg) bool {
	fs, rest, ok := awkOptions.lead(args[1:])
	if !ok {
		for _, a := range rest {
			w.awkProgram(a, args)
		}
		return false
	}
	inFile := false
	for _, f := range fs {
		switch f.name {
		case "e", "source":
			inFile = true
			w.awkProgram(f.value, args)
		case "f", "file", "E", "exec":
			inFile = true
		}
	}
	if inFile || len(rest) == 0 {
		return false
	}
	w.awkProgram(rest[0], args)
	return harmless(fs, "F v field-separator assign") && rest[0].exact() && awkPrints(rest[0].text) &&
		!slices.ContainsFunc(rest[1:], func(a arg) bool { // all others are files, or values of variables
			return a.known == dynamic || a.option() || strings.Contains(a.text, "/inet")
		})
}

// awkPrints reports whether the text alone shows that a program neither runs nor writes anything:
// output can only go elsewhere after the word print.
func awkPrints(program string) bool {
	for _, word := range []string{"system", "getline", "@", "ARGV", "\\\n"} {
		if strings.Contains(program, word) {
			return false
		}
	}
	_, after, _ := strings.Cut(program, "print")
	return !strings.ContainsAny(strings.ReplaceAll(after, "||", ""), "|>")
}

func (w *walker) awkProgram(program arg, args []arg) {
	if !program.exact() {
		return
	}
	s := awkScan{text: program.text}
	for s.at < len(s.text) && !s.lost {
		c := s.text[s.at]
		switch {
		case c == ' ' || c == '\t':
			s.at++
			continue
		case strings.HasPrefix(s.text[s.at:], "\\\n"):
			s.at += 2
			continue
		case c == '#':
			if n := strings.IndexByte(s.text[s.at:], '\n'); n >= 0 {
				s.at += n
			} else {
				s.at = len(s.text)
			}
			continue
		case c == '"':
			s.said, s.operand, s.doubtful = s.quoted('"'), true, false
			continue
		case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z':
			from := s.at
			for s.at < len(s.text) && (s.text[s.at] == '_' || s.text[s.at]|0x20 >= 'a' && s.text[s.at]|0x20 <= 'z' || s.text[s.at] >= '0' && s.text[s.at] <= '9') {
				s.at++
			}
			word := s.text[from:s.at]
			s.operand, s.doubtful = !awkKeywords.has(word), word == "getline"
			s.asks = word == "if" || word == "while" || word == "for" || word == "switch"
			switch word {
			case "print", "printf":
				s.printing = true
			case "system":
				s.acts = true
				s.names(strings.TrimLeft(s.text[s.at:], " \t("))
			}
		case c >= '0' && c <= '9':
			s.at, s.operand, s.doubtful = s.at+1, true, false
		default:
			s.sign(c)
		}
		s.said = ""
	}
	if s.lost && !awkPrints(program.text) || s.acts {
		w.find(Approve, "the program runs commands or writes files", joined(args))
	}
	for _, line := range s.lines {
		w.line(arg{text: line})
	}
}

// awkScan scans the words of a program.
type awkScan struct {
	text     string
	at       int
	acts     bool     // it runs a command or writes a file
	lines    []string // commands it certainly runs
	lost     bool     // pattern and division cannot be told apart
	operand  bool     // a value came last: a slash divides
	doubtful bool     // the last word may have been a value
	printing bool     // > would write
	brackets []bool   // the open brackets; true if one holds a condition
	asks     bool     // a condition comes next
	said     string   // the last quoted text
}

// quoted reads up to the next end character.
func (s *awkScan) quoted(end byte) string {
	from := s.at + 1
	class := false
	for s.at = from; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\':
			s.at++
		case c == end && class:
			s.lost = true // implementations differ
			return ""
		case c == end:
			s.at++
			return s.text[from : s.at-1]
		case c == '[' && end == '/':
			class = true
		case c == ']':
			class = false
		case c == '\n' && end == '/':
			s.lost = true
			return ""
		}
	}
	s.at = len(s.text)
	s.lost = true
	return ""
}

var awkSinks = []string{`"/dev/null"`, `"/dev/stderr"`, `"/dev/stdout"`}

var awkKeywords = words("print printf return if while for else do in delete exit case switch BEGIN END function func")

// names records the command named next, if its name is a literal.
func (s *awkScan) names(rest string) {
	if strings.HasPrefix(rest, `"`) {
		inner := awkScan{text: rest}
		if line := inner.quoted('"'); !inner.lost {
			s.lines = append(s.lines, line)
		}
	}
}

func (s *awkScan) sign(c byte) {
	rest := s.text[s.at+1:]
	switch c {
	case '/':
		switch {
		case s.doubtful:
			s.lost = true
		case !s.operand:
			s.quoted('/')
			s.operand = true
			return
		}
	case '|':
		if strings.HasPrefix(rest, "|") { // or
			s.at++
			break
		}
		s.acts = true
		rest = strings.TrimLeft(strings.TrimPrefix(rest, "&"), " \t")
		if strings.HasPrefix(rest, "getline") && s.said != "" {
			s.lines = append(s.lines, s.said)
		}
		s.names(rest)
	case '>': // a comparison, except while printing
		to := strings.TrimLeft(rest, "> \t")
		sink := slices.ContainsFunc(awkSinks, func(name string) bool { return strings.HasPrefix(to, name) })
		s.acts = s.acts || !strings.HasPrefix(rest, "=") && s.printing && len(s.brackets) == 0 && !sink
	case '(':
		s.brackets = append(s.brackets, s.asks)
	case ')':
		condition := false
		if n := len(s.brackets); n > 0 {
			condition = s.brackets[n-1]
			s.brackets = s.brackets[:n-1]
		}
		s.at, s.operand, s.doubtful = s.at+1, !condition, false
		return
	case ']':
		s.at, s.operand, s.doubtful = s.at+1, true, false
		return
	case '+', '-':
		s.doubtful = strings.HasPrefix(rest, string(c))
		if s.doubtful {
			s.at++
		}
		s.at, s.operand = s.at+1, false
		return
	case '\n':
		s.printing = s.printing && !s.operand
	case ';', '{', '}':
		s.printing = false
	case '@':
		s.acts = true
	}
	s.at, s.operand, s.doubtful, s.asks = s.at+1, false, false, false
}
