package scripted

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"coder/internal/core/chat"
	"coder/internal/core/message"
	"coder/internal/model/provider"
)

// separator is the line between two replies.
const separator = "---"

// Parse parses a script. Its errors name the line.
func Parse(text string) (Script, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("script: not valid UTF-8")
	}
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(text, "\ufeff"))
	p := parser{lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	for p.next < len(p.lines) {
		if err := p.parseLine(); err != nil {
			return nil, message.Errorf("script line %d: %w", p.errLine, err)
		}
	}
	if err := p.closeReply(); err != nil {
		return nil, message.Errorf("script line %d: %w", p.errLine, err)
	}
	return p.script, nil
}

type parser struct {
	lines        []string
	next         int // index of the line to read next
	errLine      int // number, from 1, of the line errors are about
	script       Script
	reply        Reply
	hasVerb      bool    // reply has a verb
	alternatives []Reply // the alternatives before the open reply, the first choice first
}

// parseLine reads one line and its block.
func (p *parser) parseLine() error {
	line := p.lines[p.next]
	p.next++
	p.errLine = p.next
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "" || trimmed[0] == '#':
		return nil
	case trimmed == separator:
		return p.closeReply()
	}
	if !p.hasVerb {
		p.hasVerb, p.reply = true, Reply{Line: p.errLine}
	}
	verb, rest := strings.TrimLeft(line, " \t"), ""
	if i := strings.IndexAny(verb, " \t"); i >= 0 {
		verb, rest = verb[:i], verb[i+1:]
	}
	return p.parseVerb(verb, rest)
}

// closeReply ends the open reply; there may be none between two separators.
func (p *parser) closeReply() error {
	if !p.hasVerb {
		return nil
	}
	if len(p.alternatives) > 0 && p.reply.isEmpty() {
		p.errLine = p.reply.Line
		return errors.New("no reply follows else")
	}
	p.hasVerb = false
	for _, r := range slices.Backward(p.alternatives) { // chain the reply to its alternatives
		other := p.reply
		r.Else = &other
		p.reply = r
	}
	p.alternatives = nil
	n := len(p.script)
	endless := slices.ContainsFunc(p.script, func(r Reply) bool {
		return r.Repeat == Forever &&
			r.Conversation == p.reply.Conversation
	})
	if !p.reply.isEmpty() && endless {
		p.errLine = p.reply.Line
		return errors.New("never reached: the reply before it repeats forever")
	}
	if p.reply.isEmpty() { // nothing but a repeat, which applies to the reply before
		if n == 0 || p.script[n-1].Repeat != 0 {
			p.errLine = p.reply.Line
			return errors.New("nothing to repeat")
		}
		p.script[n-1].Repeat = p.reply.Repeat
		return nil
	}
	p.script = append(p.script, p.reply)
	return nil
}

func (p *parser) parseVerb(verb, rest string) error {
	trimmed := strings.TrimSpace(rest)
	switch verb {
	case "else":
		switch {
		case trimmed != "":
			return errors.New("else must be alone on its line")
		case len(p.reply.Want) == 0:
			return errors.New("never reached: no want comes before this else")
		}
		p.alternatives, p.reply = append(p.alternatives, p.reply), Reply{Line: p.errLine}
		return nil
	case "to":
		text, err := p.parseText(rest)
		if p.reply.Conversation != "" || text == "" || len(p.alternatives) > 0 {
			return errors.New("to appears once, before else, and gives the text a conversation begins with")
		}
		p.reply.Conversation = text
		return err
	case "want":
		text, err := p.parseText(rest)
		p.reply.Want = append(p.reply.Want, text)
		return err
	case "usage":
		return p.parseUsage(strings.Fields(rest))
	case "stop":
		if p.reply.Stop != "" {
			return errors.New("stop is set twice")
		}
		switch p.reply.Stop = provider.Stop(trimmed); p.reply.Stop {
		case provider.StopEnd, provider.StopTools, provider.StopLength, provider.StopFilter:
			return nil
		}
		return message.Errorf("stop takes end, tools, length or filter, not %q", trimmed)
	case "repeat":
		n, err := strconv.Atoi(trimmed)
		switch {
		case len(p.alternatives) > 0:
			return errors.New("repeat belongs before else: it applies to both")
		case p.reply.Repeat != 0:
			return errors.New("repeat is set twice")
		case trimmed == "":
			n = Forever
		case err != nil || n < 1:
			return message.Errorf("repeat takes a number from 1, or no number to repeat forever, not %q", trimmed)
		}
		p.reply.Repeat = n
		return nil
	}
	step, err := p.parseStep(verb, rest)
	if err != nil {
		return err
	}
	if n := len(p.reply.Steps); n > 0 {
		switch p.reply.Steps[n-1].(type) {
		case Cut, Fail:
			return message.Errorf("never reached: %s comes after the end of the stream", verb)
		}
	}
	p.reply.Steps = append(p.reply.Steps, step)
	return nil
}

func (p *parser) parseUsage(fields []string) error {
	if p.reply.Usage != nil {
		return errors.New("usage is set twice")
	}
	if len(fields) < 2 || len(fields) > 3 {
		return errors.New("usage takes two or three numbers: IN OUT [CACHED]")
	}
	var n [3]int
	for i, f := range fields {
		v, err := strconv.Atoi(f)
		if err != nil || v < 0 {
			return message.Errorf("usage: %q is not a token count", f)
		}
		n[i] = v
	}
	p.reply.Usage = &chat.Usage{In: n[0], Out: n[1], Cached: n[2]}
	return nil
}

func (p *parser) parseStep(verb, rest string) (Step, error) {
	switch verb {
	case "say":
		text, err := p.parseText(rest)
		return Say(text), err
	case "reason":
		text, err := p.parseText(rest)
		return Reason(text), err
	case "call":
		return p.parseCall(rest)
	case "wait":
		rest = strings.TrimSpace(rest)
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 {
			return nil, message.Errorf("wait takes a duration such as 200ms, not %q", rest)
		}
		return Wait(d), nil
	case "cut":
		rest = strings.TrimSpace(rest)
		if rest != "" && rest != "retry" {
			return nil, message.Errorf("cut takes nothing or retry, not %q", rest)
		}
		return Cut{Retry: rest == "retry"}, nil
	case "fail":
		return parseFail(rest)
	}
	return nil,
		message.Errorf("unknown verb %q; a line starts with say, reason, call, usage, stop, wait, cut, fail, to, want, else or repeat", verb)
}

// blockEnd returns the word that ends the block opened by rest, or "".
func blockEnd(rest string) string {
	mark, ok := strings.CutPrefix(rest, "<<")
	if !ok || strings.ContainsFunc(mark, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return ""
	}
	return mark
}

// parseText returns rest itself, or verbatim the block of lines that it opens.
func (p *parser) parseText(rest string) (string, error) {
	mark := blockEnd(strings.TrimSpace(rest))
	if mark == "" {
		return rest, nil
	}
	n := slices.IndexFunc(p.lines[p.next:], func(l string) bool { return strings.TrimSpace(l) == mark })
	if n < 0 {
		return "", message.Errorf("the block is not closed: no line %q follows", mark)
	}
	block := p.lines[p.next : p.next+n]
	p.next += n + 1
	return strings.Join(block, "\n"), nil
}

// parseCall reads NAME [id=ID] [ARGS].
func (p *parser) parseCall(rest string) (Step, error) {
	name, rest := cutWord(rest)
	if name == "" || name[0] == '{' || blockEnd(name) != "" {
		return nil, errors.New("call needs a tool name")
	}
	c := Call{Name: name}
	if w, after := cutWord(rest); strings.HasPrefix(w, "id=") {
		c.ID, c.HasID, rest = strings.TrimPrefix(w, "id="), true, after
	}
	args, err := p.parseText(strings.TrimSpace(rest))
	c.Args = cmp.Or(args, "{}")
	return c, err
}

// parseFail reads KIND [after=DURATION] [TEXT].
func parseFail(rest string) (Step, error) {
	f := Fail{}
	f.Kind, rest = cutWord(rest)
	if _, err := findFailure(f.Kind); err != nil {
		return nil, err
	}
	if w, after := cutWord(rest); strings.HasPrefix(w, "after=") {
		d, err := time.ParseDuration(strings.TrimPrefix(w, "after="))
		if err != nil || d <= 0 {
			return nil, message.Errorf("fail: %q is not a duration such as after=2s", w)
		}
		f.After, rest = d, after
	}
	f.Text = strings.TrimSpace(rest)
	return f, nil
}

// cutWord splits off the first word of s.
func cutWord(s string) (first, rest string) {
	s = strings.TrimSpace(s)
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}
