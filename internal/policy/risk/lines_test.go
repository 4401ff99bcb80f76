package risk_test

import (
	"math/rand/v2"
	"strings"
)

// lines makes up command lines over which readers of shell syntax and shells
// may disagree.
type lines struct {
	random *rand.Rand
	seeds  []string // lines that only read, the other seeds after them
	reads  int      // how many of the seeds only read
}

func newLines(seed uint64, rows []judged) *lines {
	l := &lines{random: rand.New(rand.NewPCG(seed, 11))}
	for _, r := range rows {
		if r.readOnly && !strings.Contains(r.command, "tail -f") && !strings.Contains(r.command, "while true") && !strings.Contains(r.command, "while :") { // they have no end
			l.seeds = append(l.seeds, r.command)
		}
	}
	l.reads = len(l.seeds)
	for _, r := range rows {
		if !r.readOnly && len(r.command) < 200 {
			l.seeds = append(l.seeds, r.command)
		}
	}
	return l
}

func (l *lines) oneOf(list []string) string { return list[l.random.IntN(len(list))] }
func (l *lines) chance(percent int) bool    { return l.random.IntN(100) < percent }

// next is another line.
func (l *lines) next() string {
	var line string
	switch n := l.random.IntN(10); {
	case n < 3:
		line = l.seeds[l.random.IntN(l.reads)]
	case n < 4:
		line = l.oneOf(l.seeds)
	case n < 8:
		line = l.list(2)
	default:
		line = l.soup()
	}
	for range l.random.IntN(4) {
		line = l.changed(line)
	}
	if l.chance(10) {
		line = l.oneOf(values) + line
	}
	return line
}

// values are given to variables that a line may take for more than text.
var values = []string{
	"x='a['; z='$(touch M)]'; x=$x$z; ", "x='a[$'; z='(touch M)]'; x=\"$x$z\"; ", "for z in '`touch M`'; do x=a[$z]; done; ", "z='$(touch M)'; x=z; ", "x='M -o -v a[$(touch M)]'; ",
}

// pieces of command lines that shells take for more than text.
var pieces = []string{
	" ", " ", "\n", "\\\n", "\\\n", "\t", ";", "&", "&&", "||", "|", "|&", "#", "\\", "'", `"`, "$'", `$"`, `\'`, "`", "$(", ")", "(", "{ ", "; }", "!", "! ",
	"touch M", "rm a", "ls", "ls ", "cat", "echo ", "eval ", "exec ", "command ", "<<E\n", "<<'E'\n", "<<-E\n", "\nE\n", "E", "<<<", "[[ ", " ]]", "((", "))", "$((", "$[", "]",
	"${x:-", "${x:=", "${!x}", "${x@P}", "${x/a/", "${x[", "${#", "}", "if ", "; then ", "; else ", "; fi", "case a in a) ", ";; esac", ";& ", "while ", "; do ", "; done", "for f in ", "select f in ",
	"<(", ">(", "&>M", "&>/dev/null", ">&2", ">&M", "2>", ">", ">>M", ">|M", "<>M", "<", "2>&1", "M", "x=", "x+=", "x=(", "a[0]=", "$x", "$@", "$*", "@(", "!(", "*", "?", "{a,b}", "{ls,M}", "{", "}", "function f ", "f() ",
	"~", "~root", "[", "time ", "coproc ", "trap ", "test -v ", "printf -v ", "read ", "unset ", "declare ", "export ", "let ", "alias ", "PATH=. ", "IFS=/ ", " --to-command=touch", " -I touch", " --use-compress-program=touch", ";w M", "w M", "/w M", ";e touch M", " ]", " -o -v ", "[]/]", " -P0 ",
	"\r", "\r\n", "\v", "\f", "\u00a0", "\u2028", "\u3000", "\xff", "\x01", "é",
}

// payloads do what no line that only reads may do.
var payloads = []string{
	"touch M", "$(touch M)", "`touch M`", ";touch M", "&&touch M", "|touch M", "&touch M", "\ntouch M\n", ">M", "\n>M\n", "${x:-$(touch M)}", "${x:=`touch M`}",
	"$((a[$(touch M)]))", "a[$(touch M)]", "<(touch M)", "$\\\n(touch M)", "\\\n`touch M`", "`\\\ntouch M`", "$(\\\ntouch M)", "\\\n;touch M", ";\\\ntouch M", "#\\\ntouch M", "'$(touch M)'", `\$(touch M)`,
	"\"$(touch M)\"", "$'\\'`touch M`'", "'\\''`touch M`'", ";rm a", "$(rm a)", "! touch M", "{ touch M; }", "(touch M)", "<<E\n$(touch M)\nE\n", "<<\\E\ntouch M\nE\n", "<<E\n\\\nE\ntouch M\nE\n",
	"${x:-'}$(touch M)'}", "${x#'$(touch M)'}", "\"${x:-'$(touch M)'}\"", "\"${x:-\"`touch M`\"}\"", "$[a[`touch M`]]", "${x[$(touch M)]}", "${x:$(touch M)}", "~$(touch M)", "{a,$(touch M)}",
}

// soup is pieces put together as they come.
func (l *lines) soup() string {
	var b strings.Builder
	for range 2 + l.random.IntN(8) {
		b.WriteString(l.oneOf(pieces))
	}
	if l.chance(50) {
		b.WriteString(l.oneOf(payloads))
	}
	return b.String()
}

// changed is a line with something added, taken away or turned.
func (l *lines) changed(line string) string {
	at := l.random.IntN(len(line) + 1)
	to := at + l.random.IntN(len(line)-at+1)
	switch l.random.IntN(12) {
	case 0, 1, 2:
		return line[:at] + "\\\n" + line[at:]
	case 3, 4:
		return line[:at] + l.oneOf(pieces) + line[at:]
	case 5, 6:
		return line[:at] + l.oneOf(payloads) + line[at:]
	case 7:
		return line[:at] + line[min(len(line), at+1+l.random.IntN(3)):]
	case 8:
		quote := l.oneOf([]string{`"`, `'`, "`"})
		return line[:at] + quote + line[at:to] + quote + line[to:]
	case 9:
		around := l.oneOf([]string{"$(,)", "${x:-,}", "$((,))", "<(,)", "{,;}", "(,)", `"$(,)"`, `"${x:-,}"`, "[[ , ]]", "((,))", "`,`", "'\\'','\\''", "$',\\''"})
		open, shut, _ := strings.Cut(around, ",")
		return line[:at] + open + line[at:to] + shut + line[to:]
	case 10:
		return line + l.oneOf([]string{" ", "; ", " | ", " && ", "\n", " || ", "&", " #", "\\\n", "|&"}) + l.oneOf(l.seeds)
	default:
		return l.list(1)[:] + l.oneOf([]string{"; ", " | ", " && ", "\n"}) + line
	}
}

// list is commands put together as people do.
func (l *lines) list(depth int) string {
	line := l.command(depth)
	for range l.random.IntN(3) {
		line += l.oneOf([]string{"; ", " | ", " && ", " || ", "\n", "|", ";"}) + l.command(depth)
	}
	return line
}

func (l *lines) command(depth int) string {
	if depth > 0 && l.chance(25) {
		return l.compound(depth - 1)
	}
	line := l.oneOf([]string{"", "", "", "", "x=1 ", "LC_ALL=C ", "env ", "command ", "timeout 1 ", "nice ", "! ", "time ", "2>/dev/null "}) +
		l.oneOf([]string{"ls", "cat", "echo", "head -n1", "grep -r x", "wc -l", "printf '%s\\n'", "find . -name", "sort", "test -f", "[ -n", "true", "xargs ls", "sed -n 1p", "awk '{print $1}'", "cd", "stat", "type", ":", "tr a", "cut -f1", "tar tf", "tar -tvf a.tar", "unzip -l a.zip", "zcat", "yes", "read -r", "read x", "sed 's/a/b/;s/[c]/d/g'", "[ -f \"$x\"", "test ! -e \"$x\"", "[ \"$x\" =", "xargs -P2 -n1 stat"})
	for range l.random.IntN(4) {
		line += " " + l.word(depth)
	}
	if l.chance(25) {
		line += l.oneOf([]string{" 2>/dev/null", " >/dev/null", " 2>&1", " &>/dev/null", " </dev/null", " >&2", " 1>&2", " >/dev/null 2>&1"})
	}
	if l.chance(5) {
		line += " <<E\n" + l.word(depth) + "\nE\n"
	}
	return line
}

func (l *lines) compound(depth int) string {
	switch l.random.IntN(10) {
	case 9:
		return "while read " + l.oneOf([]string{"x", "-r x", "x z", l.word(depth)}) + "; do " + l.list(depth) + "; done " + l.oneOf([]string{"<b.txt", "<<E\n" + l.word(depth) + "\nE\n", "<<'E'\na[$(touch M)]\n$(touch M)\n-v a[`touch M`]\nE\n"})
	case 0:
		return "if " + l.list(depth) + "; then " + l.list(depth) + "; fi"
	case 1:
		return "for f in " + l.word(depth) + " " + l.word(depth) + "; do " + l.list(depth) + "; done"
	case 2:
		return "case " + l.word(depth) + " in " + l.word(depth) + ") " + l.list(depth) + ";; esac"
	case 3:
		return "(" + l.list(depth) + ")"
	case 4:
		return "{ " + l.list(depth) + "; }"
	case 5:
		return "[[ " + l.word(depth) + l.oneOf([]string{" == ", " =~ ", " != ", " -ef ", " -eq ", " < "}) + l.word(depth) + " ]]"
	case 6:
		return "[[ " + l.oneOf([]string{"-f ", "-n ", "-v ", "-z ", "! -e ", ""}) + l.word(depth) + l.oneOf([]string{"", " && -n " + l.word(depth), " || " + l.word(depth)}) + " ]]"
	case 7:
		return "while " + l.list(depth) + "; do break; done"
	default:
		return "((" + l.oneOf([]string{"x", "1+1", "x++", "a[0]", l.word(depth)}) + "))"
	}
}

func (l *lines) word(depth int) string {
	plain := []string{"a", "b.txt", "src", "-l", "-n", "--", "*", "*.go", "'a b'", `"a b"`, "$x", `"$x"`, "${x}", "${x:-a}", "{a,b}", "{1..3}", "a\\ b", "~", "~/a", "[ab]", "?", "#", "a#b", "$'a\\tb'", `$"a"`,
		"\"it's\"", "'say \"x\"'", "$HOME", "$?", "$$", "$#", "${#x}", "${x%.*}", "${x/a/b}", "é", "1", "=", "x=1", "]", "]]", "!", "}", "{", "-", "\\", "\"\\\"\"", "$((1+1))", "$((x))", "$(($x))", "${!x}", "${a:x}", "${a[x]}", "\"${!x}\"", "'`'", "'$('", "@(a|b)", "\"`echo`\""}
	if depth > 0 && l.chance(10) {
		inner := l.list(depth - 1)
		return l.oneOf([]string{"$(" + inner + ")", "`" + inner + "`", `"$(` + inner + `)"`, "${x:-" + inner + "}", `"${x:-` + inner + `}"`, "<(" + inner + ")", "$((" + inner + "))", "'" + inner + "'", `"` + inner + `"`})
	}
	return l.oneOf(plain)
}
