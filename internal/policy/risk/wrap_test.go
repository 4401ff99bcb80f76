package risk_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"coder/internal/policy/risk"

	"mvdan.cc/sh/v3/syntax"
)

// around puts a whole command line into something that runs it.
var around = map[string]func(string) string{
	"subshell":     func(c string) string { return "(\n" + c + "\n)" },
	"group":        func(c string) string { return "{\n" + c + "\n}" },
	"chain":        func(c string) string { return "true && {\n" + c + "\n}" },
	"sequence":     func(c string) string { return "ls; " + c },
	"pipe":         func(c string) string { return "(\n" + c + "\n) | cat" },
	"function":     func(c string) string { return "f() {\n" + c + "\n}\nf" },
	"if":           func(c string) string { return "if true; then\n" + c + "\nfi" },
	"loop":         func(c string) string { return "for i in 1; do\n" + c + "\ndone" },
	"negation":     func(c string) string { return "! {\n" + c + "\n}" },
	"background":   func(c string) string { return "{\n" + c + "\n} &" },
	"substitution": func(c string) string { return "echo $(\n" + c + "\n)" },
	"continuation": func(c string) string { return "ls \\\n  -l\n" + c },
	"sh -c":        func(c string) string { return "sh -c " + quote(c) },
	"env sh -c":    func(c string) string { return "env A=1 sh -ec " + quote(c) },
	"eval":         func(c string) string { return "eval " + quote(c) },
	"trap":         func(c string) string { return "trap " + quote(c) + " EXIT" },
	"find":         func(c string) string { return "find . -exec sh -c " + quote(c) + ` \;` },
}

// before stands before a simple command.
var before = []string{
	"env ", "env A=1 ", "nohup ", "nice -n 5 ", "timeout 5 ", "sudo ", "command ", "exec ", "stdbuf -oL ", "setsid ", "xargs ", "xargs -n1 ",
	"\\\n", "A=1 ", "2>&1 ", "&>/dev/null ", "! ", "time ", "nice ", "timeout -k 1 5 ", "x=1; ", "[[ -f a ]] && ", "xargs -I{} ", "ls && ", "ls | ", "ls & ", "ls\n", "find . -exec ",
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// wordList are the words of a simple command, as written; none if it is anything
// else.
func wordList(command string) (ws []string) {
	file, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	if err != nil || len(file.Stmts) != 1 || strings.ContainsFunc(command, unicode.IsControl) || !utf8.ValidString(command) {
		return nil
	}
	s := file.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || len(s.Redirs) > 0 || len(call.Assigns) > 0 || strings.Contains(command, "#") || s.Semicolon.IsValid() {
		return nil
	}
	for _, word := range call.Args {
		ws = append(ws, command[word.Pos().Offset():word.End().Offset()])
	}
	if len(ws) > 0 && strings.Trim(ws[0], "abcdefghijklmnopqrstuvwxyz/.") != "" || syntax.IsKeyword(ws[0]) {
		return nil
	}
	return ws
}

func FuzzWrappingNeverLowersTheVerdict(f *testing.F) {
	for _, row := range commandVars(f) {
		f.Add(row.command)
	}
	f.Fuzz(func(t *testing.T, command string) {
		if _, err := syntax.NewParser().Parse(strings.NewReader(command), ""); err != nil || len(command) > 4096 || strings.HasSuffix(command, `\`) {
			return
		}
		bare := risk.Analyse(command, facts())
		for name, wrap := range around {
			compare(t, name, bare, wrap(command))
		}
		ws := wordList(command)
		if ws == nil {
			return
		}
		for _, prefix := range before {
			compare(t, prefix, bare, prefix+strings.Join(ws, " "))
		}
		compare(t, "continued words", bare, strings.Join(ws, " \\\n "))
		compare(t, "a quoted name", bare, strings.Join(append([]string{`"` + ws[0] + `"`}, ws[1:]...), " "))
		compare(t, "an escaped name", bare, `\`+strings.Join(ws, " "))
		compare(t, "a split name", bare, ws[0][:1]+"''"+ws[0][1:]+strings.Join(append([]string{""}, ws[1:]...), " "))
		compare(t, "a name broken over lines", bare, ws[0][:1]+"\\\n"+ws[0][1:]+strings.Join(append([]string{""}, ws[1:]...), " "))
	})
}

func compare(t *testing.T, how string, bare risk.Report, wrapped string) {
	t.Helper()
	r := risk.Analyse(wrapped, facts())
	if r.Level < bare.Level && !gaveUp(r) {
		t.Errorf("%s: %v became %v: %q %v", how, bare.Level, r.Level, wrapped, bare.Findings)
	}
	if r.ReadOnly && !bare.ReadOnly && len(bare.Simple) > 0 {
		t.Errorf("%s: became read-only: %q", how, wrapped)
	}
}

// gaveUp reports whether the line was too much to judge, and so must be
// approved whatever it holds.
func gaveUp(r risk.Report) bool {
	for _, f := range r.Findings {
		if strings.Contains(f.Text, "too ") {
			return true
		}
	}
	return false
}

func FuzzAnalyseHoldsItsPromises(f *testing.F) {
	for _, row := range commandVars(f) {
		f.Add(row.command)
	}
	f.Add("pwd \\\n# x\nrm a")
	f.Add("cat <<\\E\n$(rm a)\nE")
	f.Fuzz(func(t *testing.T, command string) {
		r := risk.Analyse(command, facts())
		if r.ReadOnly && (r.Level > risk.None || r.Unknown || r.Substituted || len(r.Writes) > 0) {
			t.Errorf("read-only, yet %+v", r)
		}
		if r.ReadOnly != (r.Why == "") || strings.ContainsAny(r.Why, "\x1b\r\u202e") {
			t.Errorf("read-only=%v, because %q", r.ReadOnly, r.Why)
		}
		if (r.Level > risk.None) != (len(r.Findings) > 0) {
			t.Errorf("%v with %v", r.Level, r.Findings)
		}
		if guarded := r.ShellLine(); r.ReadOnly {
			if again := risk.Analyse(guarded, facts()); again.Level > risk.None {
				t.Errorf("guarding %q made it %q", command, guarded)
			}
		} else if shapes, err := risk.Shapes(r); guarded != command && !strings.Contains(command, "\\\n") && !r.OnlyWrites && (err != nil || len(shapes) == 0) {
			t.Errorf("%q was changed to %q", command, guarded)
		}
	})
}
