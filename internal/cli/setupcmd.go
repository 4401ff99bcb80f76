package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/host/stdio"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// setup connects the program with a model: it finds out what there is, tries the
// choice with one request and writes it down.
type setup struct {
	app   *app.App
	words *i18n.Printer
	out   io.Writer
	in    *stdio.Reader // nil where nobody is there to be asked
	tty   *os.File      // what is printed on, if that is a terminal
	ascii bool          // it shows no more

	use           *app.Endpoint // the configured one, which lacks a model; nil: none
	preset, model string        // chosen beforehand
	yes           bool
}

// errNotWritten reports that the person left before anything was written.
var errNotWritten = &exitError{code: ExitInput, text: "nothing was written"}

// runSetup connects the program with a model, with questions at a terminal and
// without in a pipe.
func (inv *invocation) runSetup(ctx context.Context, a *app.App) error {
	s := setup{app: a, words: inv.words, ascii: inv.ascii(), out: inv.Stdout, preset: inv.flags.preset, model: inv.flags.Model, yes: inv.flags.yes}
	if in, out, ok := inv.Terminal(); ok && !s.yes {
		s.in, s.out, s.tty = stdio.NewReader(in), stdio.NewWriter(ctx, out), out
	}
	if s.yes && s.preset == "" {
		return usagef("coder setup --yes does not ask, so name the endpoint: coder setup --yes --preset NAME [--model M]")
	}
	if s.in == nil && s.preset == "" {
		return usagef("coder setup asks questions; without a terminal name the endpoint: coder setup --preset NAME [--model M] [--yes]")
	}
	return s.run(ctx)
}

func (s *setup) run(ctx context.Context) error {
	e, err := s.endpoint(ctx)
	if err != nil {
		return err
	}
	if s.in == nil && !s.yes {
		if other, err := s.otherEndpoint(e); err != nil {
			return err
		} else if other != "" {
			return inputf("your settings already name an endpoint, %s; --yes replaces it", other)
		}
	}
	model, err := s.chooseModel(ctx, e)
	if err != nil {
		return err
	}
	if err := s.try(ctx, e, model); err != nil {
		return err
	}
	s.model = model
	if s.use != nil {
		if other, err := s.otherEndpoint(e); err != nil {
			return err
		} else if other != "" {
			s.say(s.words.T("your settings name another endpoint, %s: they are unchanged, and the model is used until the program ends", oneLine(other)))
			return ctx.Err()
		}
	}
	withKey := false
	if s.in != nil && e.Key != "" && e.Provider.APIKey != "" {
		s.say(s.words.T("The key is in %s. It can stay there and be read at each start, or be written into the file.", e.Key))
		if withKey, err = s.confirm(ctx, s.words.T("Write the key itself into the file? [y/N] ")); err != nil {
			return err
		}
	}
	saved, err := s.app.SaveEndpoint(e, model, withKey)
	if err != nil {
		return err
	}
	lines := []string{s.words.T("written to %s:", saved.Path)}
	for _, w := range saved.Written {
		lines = append(lines, "  "+w)
	}
	switch {
	case withKey:
		lines = append(lines, "  "+s.words.T("and the key; only you can read the file"))
	case e.Key != "":
		lines = append(lines, "  "+s.words.T("the key is read from %s at each start", e.Key))
	}
	if saved.Address != "" {
		lines = append(lines, "  "+s.words.T("the address is read from %s at each start", saved.Address))
	}
	if len(saved.Gone) > 0 {
		lines = append(lines, "  "+s.words.T("removed, since it was for another endpoint: %s", strings.Join(saved.Gone, ", ")))
	}
	first, err := s.app.Overruled(saved.Path, e, model)
	for _, o := range first {
		lines = append(lines, s.words.Said(fmt.Sprintf("but %s also sets %s, and takes precedence", oneLine(o.Origin.Shown()), o.Key)))
	}
	s.say(lines...)
	return cmp.Or(err, ctx.Err())
}

// otherEndpoint is the endpoint that the person's own settings name, if it is not e.
func (s *setup) otherEndpoint(e app.Endpoint) (string, error) {
	now, err := s.app.Connected()
	if now == e.Provider.Preset || now == e.Provider.BaseURL {
		now = ""
	}
	return now, err
}

func (s *setup) say(lines ...string) {
	fmt.Fprintln(s.out, ink.Folded(strings.Join(lines, "\n"), s.width()))
}

func (s *setup) table(t display.Table) {
	text := display.Blocks{t}.Translated(s.words.Said, ink.Width)
	if wide := s.width(); wide > 0 {
		text = term.Text(display.Blocks{t}, wide-2, term.Options{Words: s.words, ASCII: s.ascii})
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintln(s.out, "  "+line)
	}
}

// width is how many columns there are now; 0: any.
func (s *setup) width() int {
	if s.tty == nil {
		return 0
	}
	return width(s.tty)
}

// foldedQuestion is a question broken between words for a terminal of this width, with the
// blank before what is typed.
func foldedQuestion(question string, width int) string {
	words := strings.TrimRight(question, " ")
	return ink.Folded(words, width) + question[len(words):]
}

// keysDoNothing is said where keys were pressed that are no letters.
const keysDoNothing = "arrows and similar keys do nothing here: type the answer"

// hasKeys reports whether keys were pressed that are no letters: the terminal sends what it
// calls them.
func hasKeys(line string) bool {
	return strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}

// line asks for one line. One who leaves has chosen nothing.
func (s *setup) line(ctx context.Context, question string) (string, error) {
	for {
		fmt.Fprint(s.out, foldedQuestion(question, s.width()))
		line, err := s.in.Line(ctx, promptLimit)
		switch {
		case ctx.Err() != nil:
			fmt.Fprintln(s.out)
			return "", ctx.Err()
		case err != nil:
			fmt.Fprintln(s.out)
			return "", errNotWritten
		case hasKeys(line):
			s.say(s.words.T(keysDoNothing))
			continue
		}
		return strings.TrimSpace(line), nil
	}
}

func (s *setup) confirm(ctx context.Context, question string) (bool, error) {
	line, err := s.line(ctx, question)
	return slices.Contains([]string{"y", "yes", "是", "好"}, strings.ToLower(line)), err
}

// endpoint is the one that was named, or that the person chooses.
func (s *setup) endpoint(ctx context.Context) (app.Endpoint, error) {
	switch {
	case s.use != nil:
		s.app.Ask(ctx, s.use)
		return *s.use, ctx.Err()
	case s.preset != "":
		return s.named(ctx, s.preset)
	}
	s.say(s.words.T("Looking for keys in the environment and for servers on this machine…"))
	all := s.app.Endpoints(ctx)
	if ctx.Err() != nil {
		return app.Endpoint{}, ctx.Err()
	}
	for _, e := range all {
		if e.Missed() {
			s.say(notFound(s.words, e))
		}
	}
	found := slices.DeleteFunc(all, func(e app.Endpoint) bool { return !e.Found() })
	slices.SortStableFunc(found, func(a, b app.Endpoint) int { // the first is what Enter takes
		switch {
		case (a.Err == nil) == (b.Err == nil):
			return 0
		case a.Err == nil:
			return -1
		}
		return 1
	})
	t := display.Table{}
	for i, e := range found {
		what := display.Cell{Text: fmt.Sprintf(display.Form(len(e.Models), "%d model", "%d models"), len(e.Models)), Words: true}
		if e.Err != nil {
			what.Text = e.Err.Error()
		}
		t.Rows = append(t.Rows, []display.Cell{{Text: strconv.Itoa(i + 1)}, {Text: e.Title}, {Text: oneLine(address(e))}, what})
	}
	question := s.words.T("Which one? A name (openai, anthropic, ollama …) or an address: ")
	if len(found) == 0 {
		s.say(s.words.T("Nothing found."))
	} else {
		s.table(t)
		question = s.words.T("Which one? A number, a name (openai, anthropic, ollama …) or an address [1]: ")
	}
	unreached := ""
	for {
		answer, err := s.line(ctx, question)
		if err != nil {
			return app.Endpoint{}, err
		}
		if answer == "" && len(found) == 0 {
			return app.Endpoint{}, errNotWritten
		}
		n, notNumber := strconv.Atoi(answer)
		if answer == "" {
			n, notNumber = 1, nil
		}
		switch {
		case notNumber == nil && n >= 1 && n <= len(found):
			return found[n-1], nil
		case notNumber == nil && len(found) > 0:
			s.say(s.words.T(display.Form(len(found), "the only number is %d", "the last number is %d"), len(found)))
			continue
		}
		e, err := s.named(ctx, answer)
		switch {
		case ctx.Err() != nil:
			return e, err
		case err != nil:
			s.say(s.words.Said(message(err)))
		case e.Unreachable() && answer != unreached:
			unreached = answer
			s.say(s.words.T("%s; enter it again to use it anyway", s.words.Said(e.Err.Error())))
		default:
			return e, nil
		}
	}
}

// named is an endpoint by its name or address, once it has been asked what it
// has.
func (s *setup) named(ctx context.Context, name string) (app.Endpoint, error) {
	e, err := s.app.EndpointNamed(name)
	if err != nil {
		return e, err
	}
	s.app.Ask(ctx, &e)
	return e, ctx.Err()
}

// shownModels is how many models the person is shown to choose from.
const shownModels = 20

// chooseModel is the model that was named, or that the person chooses. Without a
// person it is the usual one of the endpoint, or the first.
func (s *setup) chooseModel(ctx context.Context, e app.Endpoint) (string, error) {
	if s.model != "" {
		return s.model, nil
	}
	usual := e.Provider.Model
	if has := slices.ContainsFunc(e.Models, func(o app.Offer) bool { return o.Name == usual }); !has && len(e.Models) > 0 {
		usual = e.Models[0].Name
	}
	if s.in == nil {
		if usual == "" {
			why := errors.New("it lists none")
			if e.Err != nil {
				why = e.Err
			}
			return "", inputf("choose a model with --model: %v", why)
		}
		return usual, nil
	}
	shown, unknown := e.Models, ""
	if e.Err != nil {
		s.say(s.words.T("the endpoint does not list its models: %s", s.words.Said(e.Err.Error())))
	}
	if e.WantsKey() {
		s.say(s.words.T("it needs a key: quit with Ctrl+D, set CODER_API_KEY, and try again"))
	}
	s.listModels(shown)
	for {
		question := s.words.T("Which model? ")
		if usual != "" {
			question = s.words.T("Which model? [%s] ", oneLine(usual))
		}
		answer, err := s.line(ctx, question)
		switch n, notNumber := strconv.Atoi(answer); {
		case err != nil:
			return "", err
		case answer == "" && usual != "":
			return usual, nil
		case answer == "":
			continue
		case notNumber == nil && n >= 1 && n <= min(len(shown), shownModels):
			return shown[n-1].Name, nil
		case notNumber == nil && len(shown) > 0:
			n := min(len(shown), shownModels)
			s.say(s.words.T(display.Form(n, "the only number is %d", "the last number is %d"), n))
			continue
		}
		if some := slices.DeleteFunc(slices.Clone(e.Models), func(o app.Offer) bool {
			return !strings.Contains(strings.ToLower(o.Name), strings.ToLower(answer))
		}); len(some) > 1 && !slices.ContainsFunc(some, func(o app.Offer) bool { return o.Name == answer }) {
			shown = some
			if !slices.ContainsFunc(shown, func(o app.Offer) bool { return o.Name == usual }) {
				usual = shown[0].Name
			}
			s.listModels(shown)
			continue
		} else if len(some) == 1 {
			return some[0].Name, nil
		} else if len(some) == 0 && len(e.Models) > 0 && answer != unknown {
			unknown = answer
			s.say(s.words.T("unknown model %s; enter it again to use it anyway", oneLine(answer)))
			continue
		}
		return answer, nil
	}
}

// narrow is how many columns a list of models with its prices needs.
const narrow = 60

// listModels shows models to choose from by their numbers.
func (s *setup) listModels(shown []app.Offer) {
	if len(shown) == 0 {
		return
	}
	list := shown[:min(len(shown), shownModels)]
	table := offers(list)
	for i := range list {
		table.Rows[i][0].Text = strconv.Itoa(i + 1)
	}
	if wide := s.width(); wide > 0 && wide < narrow { // the price is not what is chosen by
		table.Head = table.Head[:3]
		for i := range table.Rows {
			table.Rows[i] = table.Rows[i][:3]
		}
	}
	s.table(table)
	if len(shown) > shownModels {
		s.say(s.words.T("and %d more; type part of a name to filter them", len(shown)-shownModels))
	}
}

// try asks the model something, and the person what to do if it does not
// answer.
func (s *setup) try(ctx context.Context, e app.Endpoint, model string) error {
	s.say(s.words.T("Testing %s at %s…", model, oneLine(address(e))))
	answer, window, err := s.app.Try(ctx, e, model)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && window > 0:
		s.say(s.words.T("it answers: %s (window: %d tokens)", answer, window))
		return nil
	case err == nil:
		s.say(s.words.T("it answers: %s", answer))
		return nil
	case s.yes:
		s.say(s.words.T("no answer: %s", s.words.Said(err.Error())))
		return nil
	case s.in == nil:
		return fmt.Errorf("the test failed, and nothing was written: %w", err)
	}
	s.say(s.words.T("no answer: %s", s.words.Said(err.Error())))
	all, err := s.confirm(ctx, s.words.T("Write it anyway? [y/N] "))
	if err == nil && !all {
		err = errNotWritten
	}
	return err
}
