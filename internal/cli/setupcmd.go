package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/app"
	"coder/internal/config"
	"coder/internal/core/display"
	"coder/internal/model/provider"
	"coder/internal/policy/mode"
	"coder/internal/ui/lineedit"
)

// setup connects the program to a model: it finds endpoints, tests the choice with one request and saves
// it.
type setup struct {
	*console
	app *app.Workspace
	ask bool // a user answers

	use           *app.Endpoint // the configured endpoint, which lacks a model; nil: none
	preset, model string        // chosen in advance
	key           string        // from stdin
	yes           bool

	saveKey bool // the key was entered here, or must be saved
}

// errNotWritten reports that the user left before anything was written.
var errNotWritten = &exitError{code: ExitInput, text: "nothing was written"}

// maxKey is the longest key read from stdin, in bytes.
const maxKey = 16 << 10

// runSetup connects the program to a model, with questions at a terminal and without in a pipe.
func (inv *invocation) runSetup(ctx context.Context, a *app.Workspace) error {
	fl := inv.flags
	switch {
	case fl.undo:
		return inv.undoTakeOver(a)
	case fl.agent != "":
		return inv.takeOver(ctx, a, fl.agent)
	}
	s := setup{app: a, console: &console{words: inv.words, ascii: inv.ascii(), out: inv.Stdout}, preset: fl.preset, model: fl.Model, yes: fl.yes}
	if c := inv.asker(ctx); c != nil && !s.yes && !fl.keyOnStdin {
		s.console, s.ask = c, true
	}
	switch {
	case s.preset == "" && s.yes:
		return usagef("coder setup --yes does not ask, so name the endpoint: coder setup --yes --preset NAME [--model M]")
	case s.preset == "" && fl.keyOnStdin:
		return usagef("with --api-key-stdin name the endpoint: coder setup --preset NAME --api-key-stdin")
	case s.preset == "" && !s.ask:
		return usagef("coder setup asks questions; without a terminal name the endpoint: coder setup --preset NAME [--model M] [--yes]")
	}
	if fl.keyOnStdin {
		line, err := inv.input.Line(ctx, maxKey)
		if s.key = strings.TrimSpace(line); err != nil || s.key == "" {
			return cmp.Or(ctx.Err(), inputf("no API key came on stdin"))
		}
	}
	return s.run(ctx)
}

func (s *setup) run(ctx context.Context) error {
	err := s.connect(ctx)
	if errors.Is(err, errUnanswered) {
		return errNotWritten
	}
	return err
}

func (s *setup) connect(ctx context.Context) error {
	e, err := s.endpoint(ctx)
	if err != nil {
		return err
	}
	if !s.ask && !s.yes {
		if other, err := s.otherEndpoint(e); err != nil {
			return err
		} else if other != "" {
			return inputf("your settings already name an endpoint, %s; --yes replaces it", other)
		}
	}
	if s.model, err = s.chooseModel(ctx, e); err != nil {
		return err
	}
	if e, err = s.try(ctx, e, s.model); err != nil {
		return err
	}
	if s.use != nil {
		if other, err := s.otherEndpoint(e); err != nil {
			return err
		} else if other != "" {
			s.say(s.words.T("your settings name another endpoint, %s: they are unchanged, and the model is used until the program ends", oneLine(other)))
			return ctx.Err()
		}
	}
	if s.ask && s.use == nil && e.Key != "" && e.Provider.APIKey != "" && !s.saveKey {
		if s.saveKey, err = s.confirm(ctx, s.words.T("Save the key too, so that coder works without %s? [y/N] ", e.Key), false); err != nil {
			return err
		}
	}
	start, err := s.startMode(ctx)
	if err != nil {
		return err
	}
	saved, err := s.app.SaveEndpoint(ctx, e, s.model, app.Choices{SaveKey: s.saveKey, Mode: start})
	if err != nil {
		return err
	}
	return s.report(ctx, saved, e)
}

// report says what was saved, and what takes precedence over it.
func (s *setup) report(ctx context.Context, saved app.Saved, e app.Endpoint) error {
	lines := []string{s.words.T("Saved to %s:", saved.Path)}
	for _, w := range saved.Written {
		lines = append(lines, "  "+w)
	}
	switch {
	case saved.KeyIn == "keychain":
		lines = append(lines, "  "+s.words.T("the key: in the system keychain"))
	case saved.KeyIn != "":
		lines = append(lines, "  "+s.words.T("the key: in a file that only you can read, below %s", s.app.KeysDir()))
	case e.Key != "":
		lines = append(lines, "  "+s.words.T("the key: read from %s at each start", e.Key))
	}
	if saved.Address != "" {
		lines = append(lines, "  "+s.words.T("the address: read from %s at each start", saved.Address))
	}
	if len(saved.Gone) > 0 {
		lines = append(lines, "  "+s.words.T("removed, as it was for another endpoint: %s", strings.Join(saved.Gone, ", ")))
	}
	first, err := s.app.Overruled(saved.Path, e, s.model)
	for _, o := range first {
		lines = append(lines, s.words.Said(fmt.Sprintf("but %s also sets %s, and takes precedence", oneLine(o.Origin.Shown()), o.Key)))
	}
	s.say(append(lines, s.words.T("Change it any time with coder setup."))...)
	return cmp.Or(err, ctx.Err())
}

// startMode asks for the mode that coder starts in; "" keeps the mode.
func (s *setup) startMode(ctx context.Context) (string, error) {
	if !s.ask || s.use != nil {
		return "", nil
	}
	now := s.app.Config.Agents.Default
	p := lineedit.Picker{Title: s.words.T("How should coder work? ")}
	for _, m := range []struct{ name, about string }{
		{mode.Build, "ask before edits and commands"},
		{mode.AutoEdit, "edit freely, ask before commands"},
		{mode.Default, "like build, with a todo list and questions to you; checks when you ask"},
	} {
		p.Items = append(p.Items, lineedit.Item{Choice: lineedit.Choice{Text: m.name, Note: s.words.Said(m.about)}, Value: m.name})
	}
	p.Choose(now)
	chosen, err := s.choose(ctx, p)
	if chosen == now {
		chosen = ""
	}
	return chosen, err
}

// otherEndpoint returns the endpoint in the user's settings, if it is not e.
func (s *setup) otherEndpoint(e app.Endpoint) (string, error) {
	now, err := s.app.Connected()
	if now == e.Provider.Preset || now == e.Provider.BaseURL {
		now = ""
	}
	return now, err
}

// endpoint returns the named endpoint, or the one that the user chooses.
func (s *setup) endpoint(ctx context.Context) (app.Endpoint, error) {
	switch {
	case s.use != nil:
		s.app.Ask(ctx, s.use)
		return *s.use, ctx.Err()
	case s.preset != "" && (s.ask || s.key != ""):
		e, err := s.app.EndpointWithoutKey(s.preset)
		if err != nil {
			return e, err
		}
		if s.key != "" {
			e.Provider.APIKey, e.Key, s.saveKey = s.key, "", true
			s.app.Ask(ctx, &e)
			return e, ctx.Err()
		}
		return s.reach(ctx, e)
	case s.preset != "":
		e, err := s.app.EndpointNamed(s.preset)
		if err == nil {
			s.app.Ask(ctx, &e)
		}
		return e, cmp.Or(err, ctx.Err())
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
	slices.SortStableFunc(found, func(a, b app.Endpoint) int { // Enter accepts the first one
		switch {
		case (a.Err == nil) == (b.Err == nil):
			return 0
		case a.Err == nil:
			return -1
		}
		return 1
	})
	for {
		chosen, err := s.choose(ctx, s.endpoints(found))
		if err != nil {
			return app.Endpoint{}, err
		}
		e, err := s.chosen(ctx, chosen, found)
		var leave *exitError
		switch {
		case ctx.Err() != nil, err == nil, errors.As(err, &leave) && leave.code == ExitInterrupted:
			return e, cmp.Or(ctx.Err(), err)
		case !errors.Is(err, errUnanswered):
			s.say(s.words.Said(message(err)))
		}
	}
}

// otherAddress is the item for an address that is not listed.
const otherAddress = "other"

// endpoints lists the endpoints found, and the vendors.
func (s *setup) endpoints(found []app.Endpoint) lineedit.Picker {
	p := lineedit.Picker{Title: s.words.T("Provider: "), Hides: app.LooksLikeKey}
	add := func(text, note, value string) {
		p.Items = append(p.Items, lineedit.Item{Choice: lineedit.Choice{Text: text, Note: note}, Value: value})
	}
	dot := s.words.Signs(" · ")
	for i, e := range found {
		note := s.words.T(display.Form(len(e.Models), "%d model", "%d models"), len(e.Models))
		if e.Err != nil {
			note = s.words.Said(e.Err.Error())
		}
		if e.Key != "" {
			note += dot + s.words.T("key from %s", e.Key)
		}
		add(e.Title, oneLine(address(e))+dot+note, strconv.Itoa(i))
	}
	for _, preset := range config.Presets() {
		known := slices.ContainsFunc(found, func(e app.Endpoint) bool { return e.Provider.Preset == preset.Name })
		if !known && !preset.Local {
			add(preset.Title, s.words.T("needs an API key"), preset.Name)
		}
	}
	add(s.words.T("another address"), s.words.T("any OpenAI-compatible server, such as https://host/v1"), otherAddress)
	p.Free = func(query string) (lineedit.Item, bool) {
		switch {
		case app.LooksLikeKey(query):
			return lineedit.Item{}, false
		case config.PresetNamed(query).Name != "", strings.ContainsAny(query, ".:/"):
			return lineedit.Item{Choice: lineedit.Choice{Text: query, Note: s.words.T("use this address")}, Value: query}, true
		}
		return lineedit.Item{}, false
	}
	return p
}

// chosen returns the endpoint of an item, with its key and its models.
func (s *setup) chosen(ctx context.Context, value string, found []app.Endpoint) (e app.Endpoint, err error) {
	preset := config.PresetNamed(value)
	usual, _ := preset.AddressIn(s.app.Env.Getenv)
	switch i, notNumber := strconv.Atoi(value); {
	case notNumber == nil && i < len(found):
		e = found[i]
		if e.WantsKey() {
			e, err = s.withKey(ctx, e)
		}
		return e, err
	case value == otherAddress:
		if value, err = s.line(ctx, s.words.T("Address: ")); err != nil {
			return e, err
		}
		e, err = s.app.EndpointWithoutKey(value)
	case preset.Name != "" && usual == "":
		if value, err = s.line(ctx, s.words.T("Address of your %s resource: ", preset.Title)); err != nil {
			return e, err
		}
		e, err = s.app.EndpointOf(preset, value)
	default:
		e, err = s.app.EndpointWithoutKey(value)
	}
	if err != nil {
		return e, err
	}
	return s.reach(ctx, e)
}

// reach asks an endpoint for its models, and you for the key if it needs one.
func (s *setup) reach(ctx context.Context, e app.Endpoint) (app.Endpoint, error) {
	if e.LacksKey() {
		return s.withKey(ctx, e)
	}
	s.app.Ask(ctx, &e)
	switch {
	case ctx.Err() != nil:
		return e, ctx.Err()
	case e.WantsKey():
		return s.withKey(ctx, e)
	case e.Unreachable():
		s.say(s.words.Said(e.Err.Error()))
		yes, err := s.confirm(ctx, s.words.T("Use this address anyway? [y/N] "), false)
		if err == nil && !yes {
			err = errUnanswered
		}
		return e, err
	}
	return e, nil
}

// withKey asks for an endpoint's key until the server accepts one. Enter alone leaves.
func (s *setup) withKey(ctx context.Context, e app.Endpoint) (app.Endpoint, error) {
	question := s.words.T("API key (hidden): ")
	if page := config.PresetNamed(e.Provider.Preset).KeyPage; page != "" {
		question = s.words.T("API key (hidden; make one at %s): ", page)
	}
	if e.WantsKey() {
		s.rejected(e)
	}
	for {
		key, err := s.secret(ctx, question)
		if err != nil {
			return e, err
		}
		if key == "" {
			return e, errUnanswered
		}
		e.Provider.APIKey, e.Provider.APIKeyCommand, e.Provider.KeyStore, e.Key, s.saveKey = key, nil, "", "", true
		e.Models, e.Err = nil, nil
		s.app.Hide(key)
		s.app.Ask(ctx, &e)
		switch {
		case ctx.Err() != nil:
			return e, ctx.Err()
		case e.WantsKey():
			s.rejected(e)
			continue
		case e.Err == nil:
			s.say(s.words.T(display.Form(len(e.Models), "The key works: %d model.", "The key works: %d models."), len(e.Models)))
		}
		return e, nil
	}
}

// rejected says which key the endpoint's server did not accept.
func (s *setup) rejected(e app.Endpoint) {
	switch {
	case e.Key != "":
		s.say(s.words.T("The server rejected the API key from %s.", e.Key))
	case e.Provider.APIKey != "":
		s.say(s.words.T("The server rejected this API key."))
	default:
		s.say(s.words.T("The server wants an API key."))
	}
}

// chooseModel returns the named model, or the one that the user chooses. Without a user it is the
// endpoint's usual model, or its first.
func (s *setup) chooseModel(ctx context.Context, e app.Endpoint) (string, error) {
	if s.model != "" {
		return s.model, nil
	}
	usual := e.Provider.Model
	if has := slices.ContainsFunc(e.Models, func(o app.Offer) bool { return o.Name == usual }); !has && len(e.Models) > 0 {
		usual = e.Models[0].Name
	}
	if !s.ask {
		if usual == "" {
			why := errors.New("it lists none")
			if e.Err != nil {
				why = e.Err
			}
			return "", inputf("choose a model with --model: %v", why)
		}
		return usual, nil
	}
	if e.Err != nil {
		s.say(s.words.T("the endpoint does not list its models: %s", s.words.Said(e.Err.Error())))
	}
	if len(e.Models) > 0 {
		return s.choose(ctx, s.models(e.Models, usual))
	}
	for {
		question := s.words.T("Which model? ")
		if usual != "" {
			question = s.words.T("Which model? [%s] ", oneLine(usual))
		}
		answer, err := s.line(ctx, question)
		if answer = cmp.Or(answer, usual); err != nil || answer != "" {
			return answer, err
		}
	}
}

// models lists the models with their windows and prices.
func (s *setup) models(all []app.Offer, usual string) lineedit.Picker {
	p := lineedit.Picker{Title: s.words.T("Model: ")}
	for _, o := range all {
		var about []string
		if o.Window > 0 {
			about = append(about, s.words.T("window %s", thousands(o.Window)))
		}
		if o.Price.Known {
			about = append(about, s.words.T("$%.2f in, $%.2f out per 1M", o.Price.In, o.Price.Out))
		}
		p.Items = append(p.Items, lineedit.Item{Choice: lineedit.Choice{Text: o.Name, Note: strings.Join(about, s.words.Signs(" · "))}, Value: o.Name})
	}
	p.Choose(usual)
	p.Free = func(query string) (lineedit.Item, bool) {
		return lineedit.Item{Choice: lineedit.Choice{Text: query, Note: s.words.T("not in the list; use it anyway")}, Value: query}, true
	}
	return p
}

// thousands abbreviates a number of tokens.
func thousands(n int) string {
	switch {
	case n >= 1_000_000:
		return strconv.FormatFloat(float64(n/100_000)/10, 'f', -1, 64) + "M"
	case n >= 1000:
		return strconv.Itoa(n/1000) + "k"
	}
	return strconv.Itoa(n)
}

// try sends the model a test request, and asks the user what to do if it fails. A key that the server
// rejects only here is requested again.
func (s *setup) try(ctx context.Context, e app.Endpoint, model string) (app.Endpoint, error) {
	for {
		s.say(s.words.T("Testing %s at %s…", model, oneLine(address(e))))
		answer, window, err := s.app.Try(ctx, e, model)
		switch {
		case ctx.Err() != nil:
			return e, ctx.Err()
		case err == nil && window > 0:
			s.say(s.words.T("It works: %s (window: %d tokens)", answer, window))
			return e, nil
		case err == nil:
			s.say(s.words.T("It works: %s", answer))
			return e, nil
		case !s.ask && !s.yes:
			return e, fmt.Errorf("the test failed, and nothing was written: %w", err)
		}
		s.say(s.words.T("It does not answer: %s", s.words.Said(err.Error())))
		if s.yes {
			return e, nil
		}
		if errors.Is(err, provider.ErrAuth) {
			e.Err = err
			if e, err = s.withKey(ctx, e); err != nil {
				return e, err
			}
			continue
		}
		anyway, err := s.confirm(ctx, s.words.T("Save it anyway? [y/N] "), false)
		if err == nil && !anyway {
			err = errUnanswered
		}
		return e, err
	}
}
