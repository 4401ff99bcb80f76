package cli

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"coder/internal/app"
	"coder/internal/ui/i18n"
)

// runMan prints the manual page.
func (inv *invocation) runMan(context.Context) error { return inv.print(manual(inv.words)) }

// manual returns the manual page, generated from the help's tables.
func manual(words *i18n.Printer) string {
	p := &manPage{words: words}
	p.line(".TH CODER 1", `""`, `"coder `+roff(app.Version)+`"`)
	p.line(".ad l") // justified lines with long names have large gaps
	p.line(".SH", roff(words.T("NAME")))
	p.line(`coder \-`, roff(words.T("a coding agent for the terminal")))
	p.line(".SH", roff(words.T("SYNOPSIS")))
	p.list("coder ", calls)
	p.line(".SH", roff(words.T("COMMANDS")))
	for _, s := range subcommands() {
		p.list("coder "+s.name+" ", s.uses)
	}
	p.line(".SH", roff(words.T("OPTIONS")))
	for _, o := range everyFlag() {
		about := words.T(o.help)
		if o.of != "" {
			about = "(" + o.of + ") " + about
		}
		p.item(strings.TrimSpace(flagName(o)), about)
	}
	p.line(".SH", roff(words.T("EXAMPLES")))
	p.list("", firstExamples)
	p.line(".SH", roff(words.T("EXIT STATUS")))
	p.list("", exitCodes)
	p.line(".SH", roff(words.T("ENVIRONMENT")))
	p.list("", environment)
	p.line(".SH", roff(words.T("FILES")))
	p.item("~/.coder/config.json, .coder/config.json", words.T("your settings, and those of the project"))
	return strings.TrimRight(p.String(), "\n")
}

type manPage struct {
	strings.Builder
	words *i18n.Printer
}

func (p *manPage) line(parts ...string) { p.WriteString(strings.Join(parts, " ") + "\n") }

func (p *manPage) item(name, about string) {
	p.line(".TP\n.B", roff(name))
	p.line(roff(about))
}

func (p *manPage) list(before string, list []use) {
	for _, u := range list {
		p.item(strings.TrimSpace(before+u.args), p.words.T(u.about))
	}
}

// roffSigns maps signs with a meaning in roff to their escapes.
var roffSigns = map[rune]string{'\\': `\e`, '-': `\-`, '"': `\(dq`, '\'': `\(aq`, '.': `\&.`}

// roff escapes text for roff, in ASCII.
func roff(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch sign, special := roffSigns[r]; {
		case special:
			b.WriteString(sign)
		case r > unicode.MaxASCII:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
