package cli

import (
	"context"
	"strings"

	"coder/internal/app"
)

// runMan prints the manual page, made of the same tables as the help.
func (inv *invocation) runMan(context.Context) error {
	p, words := &manPage{}, inv.words
	p.line(".TH CODER 1", `""`, `"coder `+roff(app.Version)+`"`)
	p.line(".SH", words.T("NAME"))
	p.line(`coder \-`, roff(words.T("a coding agent for the terminal")))
	p.line(".SH", words.T("SYNOPSIS"))
	p.line(".B coder\n[flags] [prompt]\n.br\n.B coder \\-p\n[flags] [prompt]")
	p.line(".SH", words.T("COMMANDS"))
	for _, s := range subcommands() {
		for _, u := range s.uses {
			p.line(".TP\n.B", roff(strings.TrimSpace("coder "+s.name+" "+u.args)))
			p.line(roff(words.T(u.about)))
		}
	}
	p.line(".SH", words.T("OPTIONS"))
	for _, o := range options() {
		name := "--" + o.long
		if o.short != "" {
			name = "-" + o.short + ", " + name
		}
		about := words.T(o.help)
		if o.of != "" {
			about = "(" + o.of + ") " + about
		}
		p.line(".TP\n.B", roff(strings.TrimSpace(name+" "+o.value)))
		p.line(roff(about))
	}
	p.line(".SH", words.T("EXIT STATUS"))
	p.line(roff(strings.TrimSpace(words.T(exitCodes))))
	p.line(".SH", words.T("FILES"))
	p.line(".TP\n~/.coder/config.json, .coder/config.json")
	p.line(roff(words.T("the settings and where each came from")))
	return inv.print(strings.TrimRight(p.String(), "\n"))
}

type manPage struct{ strings.Builder }

func (p *manPage) line(parts ...string) { p.WriteString(strings.Join(parts, " ") + "\n") }

// roff is text that means nothing else to the formatter.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	var lines []string
	for line := range strings.Lines(s) {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}
