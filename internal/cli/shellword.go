package cli

import "strings"

// shellWord is the unfinished last word of a shell line.
type shellWord struct {
	start     int    // its start in the line
	text      string // the word as the shell would expand it, as far as known
	openQuote rune   // the quote open at its end; 0 if none
	prefix    string // the word up to its last slash, as typed
}

// parseLastShellWord parses the last word of a line, with variables expanded.
func parseLastShellWord(line string, getenv func(string) string) shellWord {
	var w shellWord
	var text strings.Builder
	opened, slash := 0, -1
	begin := func(at int) {
		w = shellWord{start: at}
		slash = -1
		text.Reset()
	}
	for i := 0; i < len(line); i++ {
		c := rune(line[i])
		switch {
		case w.openQuote == '\'' && c != '\'', w.openQuote == '"' && !strings.ContainsRune("\"\\$", c):
			text.WriteByte(line[i])
		case c == w.openQuote:
			w.openQuote = 0
		case c == '\'' || c == '"':
			w.openQuote, opened = c, i
		case c == '\\':
			if i++; i < len(line) {
				text.WriteByte(line[i])
			}
			continue
		case c == '$':
			name := variableName(line[i+1:])
			text.WriteString(getenv(strings.Trim(name, "{}")))
			i += len(name)
			continue
		case strings.ContainsRune(" \t\n<>|&;()=!", c):
			begin(i + 1)
			continue
		default:
			text.WriteByte(line[i])
		}
		if c == '/' {
			slash = i
		}
	}
	w.text = text.String()
	if slash >= 0 {
		w.prefix = line[w.start : slash+1]
	}
	if w.openQuote != 0 && opened > slash {
		w.prefix += string(w.openQuote)
	}
	return w
}

// variableName returns the variable name at the start of text, including braces.
func variableName(text string) string {
	if strings.HasPrefix(text, "{") {
		return text[:strings.IndexByte(text, '}')+1]
	}
	n := 0
	for n < len(text) && (text[n] == '_' || text[n] >= 'A' && text[n] <= 'Z' || text[n] >= 'a' && text[n] <= 'z' ||
		n > 0 && text[n] >= '0' && text[n] <= '9') {
		n++
	}
	return text[:n]
}

// complete returns the word with a file name after its last slash, quoted like the word.
func (w shellWord) complete(name string, folder bool) string {
	var b strings.Builder
	b.WriteString(w.prefix)
	for _, r := range name {
		switch {
		case w.openQuote == '\'' && r == '\'':
			b.WriteString(`'\'`)
		case w.openQuote == '"' && strings.ContainsRune("\"$`\\", r), w.openQuote == 0 && strings.ContainsRune(shellSpecialChars, r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	switch {
	case folder:
		b.WriteByte('/')
	case w.openQuote != 0:
		b.WriteString(string(w.openQuote) + " ")
	default:
		b.WriteByte(' ')
	}
	return b.String()
}

// shellSpecialChars are the characters with a meaning to a shell.
const shellSpecialChars = " '\"$&;|<>()`\\*?[]{}#!"
