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
func (inv *invocation) runMan(context.Context) error { return inv.print(renderManual(inv.printer)) }

// renderManual returns the manual page, generated from the help's tables.
func renderManual(words *i18n.Printer) string {
	p := &manPage{printer: words}
	p.writeLine(".TH CODER 1", `""`, `"coder `+escapeRoff(app.Version)+`"`)
	p.writeLine(".ad l") // justified lines with long names have large gaps
	p.writeLine(".SH", escapeRoff(words.T("NAME")))
	p.writeLine(`coder \-`, escapeRoff(words.T("a coding agent for the terminal")))
	p.writeLine(".SH", escapeRoff(words.T("SYNOPSIS")))
	p.writeList("coder ", usageForms)
	p.writeLine(".SH", escapeRoff(words.T("COMMANDS")))
	for _, s := range subcommands() {
		p.writeList("coder "+s.name+" ", s.usages)
	}
	p.writeLine(".SH", escapeRoff(words.T("OPTIONS")))
	for _, o := range allFlags() {
		about := words.T(o.help)
		if o.command != "" {
			about = "(" + o.command + ") " + about
		}
		p.writeItem(strings.TrimSpace(flagUsage(o)), about)
	}
	p.writeLine(".SH", escapeRoff(words.T("EXAMPLES")))
	p.writeList("", firstExamples)
	p.writeLine(".SH", escapeRoff(words.T("EXIT STATUS")))
	p.writeList("", exitCodes)
	p.writeLine(".SH", escapeRoff(words.T("ENVIRONMENT")))
	p.writeList("", environmentVars)
	p.writeLine(".SH", escapeRoff(words.T("FILES")))
	p.writeItem("~/.coder/config.json, .coder/config.json", words.T("your settings, and those of the project"))
	return strings.TrimRight(p.String(), "\n")
}

type manPage struct {
	strings.Builder
	printer *i18n.Printer
}

func (p *manPage) writeLine(parts ...string) { p.WriteString(strings.Join(parts, " ") + "\n") }

func (p *manPage) writeItem(name, about string) {
	p.writeLine(".TP\n.B", escapeRoff(name))
	p.writeLine(escapeRoff(about))
}

func (p *manPage) writeList(before string, list []usageLine) {
	for _, u := range list {
		p.writeItem(strings.TrimSpace(before+u.args), p.printer.T(u.description))
	}
}

// roffEscapes maps signs with a meaning in roff to their escapes.
var roffEscapes = map[rune]string{'\\': `\e`, '-': `\-`, '"': `\(dq`, '\'': `\(aq`, '.': `\&.`}

// escapeRoff escapes text for roff, in ASCII.
func escapeRoff(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch sign, special := roffEscapes[r]; {
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
