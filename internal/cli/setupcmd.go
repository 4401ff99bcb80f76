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
	"coder/internal/core/message"
	"coder/internal/model/provider"
	"coder/internal/policy/mode"
	"coder/internal/ui/lineedit"
)

// setupFlow connects the program to a model: it finds endpoints, tests the choice with one request and saves
// it.
type setupFlow struct {
	*console
	app         *app.Workspace
	interactive bool // a user answers

	endpointInUse *app.Endpoint // the configured endpoint, which lacks a model; nil: none
	preset, model string        // chosen in advance
	key           string        // from stdin
	assumeYes     bool

	saveKey bool // the key was entered here, or must be saved
}

// errSetupAborted reports that the user left before anything was written.
var errSetupAborted = &exitError{code: ExitInput, text: "nothing was written"}

// maxKeyBytes is the longest key read from stdin, in bytes.
const maxKeyBytes = 16 << 10

// runSetup connects the program to a model, with questions at a terminal and without in a pipe.
func (inv *invocation) runSetup(ctx context.Context, a *app.Workspace) error {
	fl := inv.flags
	switch {
	case fl.undo:
		return inv.undoTakeOver(a)
	case fl.agent != "":
		return inv.takeOver(ctx, a, fl.agent)
	}
	s := setupFlow{app: a, console: &console{printer: inv.printer, ascii: inv.useASCII(), out: inv.Stdout},
		preset: fl.preset, model: fl.Model, assumeYes: fl.yes}
	if c := inv.terminalConsole(ctx); c != nil && !s.assumeYes && !fl.keyFromStdin {
		s.console, s.interactive = c, true
	}
	switch {
	case s.preset == "" && s.assumeYes:
		return usageErrorf("coder setup --yes does not ask, so name the endpoint: coder setup --yes --preset NAME [--model M]")
	case s.preset == "" && fl.keyFromStdin:
		return usageErrorf("with --api-key-stdin name the endpoint: coder setup --preset NAME --api-key-stdin")
	case s.preset == "" && !s.interactive:
		return usageErrorf("coder setup asks questions; without a terminal name the endpoint: coder setup --preset NAME [--model M] [--yes]")
	}
	if fl.keyFromStdin {
		line, err := inv.stdin.ReadLine(ctx, maxKeyBytes)
		if s.key = strings.TrimSpace(line); err != nil || s.key == "" {
			return cmp.Or(ctx.Err(), inputErrorf("no API key on stdin"))
		}
	}
	return s.run(ctx)
}

func (s *setupFlow) run(ctx context.Context) error {
	err := s.connect(ctx)
	if errors.Is(err, errNoAnswer) {
		return errSetupAborted
	}
	return err
}

func (s *setupFlow) connect(ctx context.Context) error {
	e, err := s.chooseEndpoint(ctx)
	if err != nil {
		return err
	}
	if !s.interactive && !s.assumeYes {
		if other, err := s.configuredEndpoint(e); err != nil {
			return err
		} else if other != "" {
			return inputErrorf("your settings already name an endpoint, %s; --yes replaces it", other)
		}
	}
	if s.model, err = s.chooseModel(ctx, e); err != nil {
		return err
	}
	if e, err = s.testModel(ctx, e, s.model); err != nil {
		return err
	}
	if s.endpointInUse != nil {
		if other, err := s.configuredEndpoint(e); err != nil {
			return err
		} else if other != "" {
			s.printLines(s.printer.T("your settings name another endpoint, %s: they are unchanged, and the model is used until the program ends", singleLine(other)))
			return ctx.Err()
		}
	}
	if s.interactive && s.endpointInUse == nil && e.KeyVar != "" && e.Provider.APIKey != "" && !s.saveKey {
		if s.saveKey, err = s.confirm(ctx, s.printer.T("Save the key too, so that coder works without %s? [y/N] ", e.KeyVar),
			false); err != nil {
			return err
		}
	}
	start, err := s.askStartMode(ctx)
	if err != nil {
		return err
	}
	saved, err := s.app.SaveEndpoint(ctx, e, s.model, app.SetupChoices{SaveKey: s.saveKey, Mode: start})
	if err != nil {
		return err
	}
	return s.printSaved(ctx, saved, e)
}

// printSaved says what was saved, and what takes precedence over it.
func (s *setupFlow) printSaved(ctx context.Context, saved app.SavedSettings, e app.Endpoint) error {
	lines := []string{s.printer.T("Saved to %s:", saved.Path)}
	for _, w := range saved.Written {
		lines = append(lines, "  "+w)
	}
	switch {
	case saved.KeyPlace == "keychain":
		lines = append(lines, "  "+s.printer.T("the key: in the system keychain"))
	case saved.KeyPlace != "":
		lines = append(lines, "  "+s.printer.T("the key: in a file that only you can read, below %s", s.app.KeysDir()))
	case e.KeyVar != "":
		lines = append(lines, "  "+s.printer.T("the key: read from %s at each start", e.KeyVar))
	}
	if saved.AddressVar != "" {
		lines = append(lines, "  "+s.printer.T("the address: read from %s at each start", saved.AddressVar))
	}
	if len(saved.Removed) > 0 {
		lines = append(lines, "  "+s.printer.T("removed, as it was for another endpoint: %s",
			strings.Join(saved.Removed, ", ")))
	}
	first, err := s.app.ListOverrides(saved.Path, e, s.model)
	for _, o := range first {
		lines = append(lines, s.printer.TranslateText(fmt.Sprintf("but %s also sets %s, and takes precedence",
			singleLine(o.Origin.DisplayText()), o.Key)))
	}
	s.printLines(append(lines, s.printer.T("Change it any time with coder setup."))...)
	return cmp.Or(err, ctx.Err())
}

// askStartMode asks for the mode that coder starts in; "" keeps the mode.
func (s *setupFlow) askStartMode(ctx context.Context) (string, error) {
	if !s.interactive || s.endpointInUse != nil {
		return "", nil
	}
	now := s.app.Config.Agents.Default
	p := lineedit.Picker{Title: s.printer.T("How should coder work? ")}
	for _, m := range []struct{ name, about string }{
		{mode.Build, "ask before edits and commands"},
		{mode.AutoEdit, "edit freely, ask before commands"},
		{mode.Default, "like build, with a todo list and questions to you; checks when you ask"},
	} {
		p.Items = append(p.Items, lineedit.Item{Choice: lineedit.Choice{Text: m.name, Note: s.printer.TranslateText(m.about)},
			Value: m.name})
	}
	p.Select(now)
	chosen, err := s.choose(ctx, p)
	if chosen == now {
		chosen = ""
	}
	return chosen, err
}

// configuredEndpoint returns the endpoint in the user's settings, if it is not e.
func (s *setupFlow) configuredEndpoint(e app.Endpoint) (string, error) {
	now, err := s.app.ConfiguredEndpoint()
	if now == e.Provider.Preset || now == e.Provider.BaseURL {
		now = ""
	}
	return now, err
}

// chooseEndpoint returns the named endpoint, or the one that the user chooses.
func (s *setupFlow) chooseEndpoint(ctx context.Context) (app.Endpoint, error) {
	switch {
	case s.endpointInUse != nil:
		s.app.LoadModels(ctx, s.endpointInUse)
		return *s.endpointInUse, ctx.Err()
	case s.preset != "" && (s.interactive || s.key != ""):
		e, err := s.app.FindEndpointWithoutKey(s.preset)
		if err != nil {
			return e, err
		}
		if s.key != "" {
			e.Provider.APIKey, e.KeyVar, s.saveKey = s.key, "", true
			s.app.LoadModels(ctx, &e)
			return e, ctx.Err()
		}
		return s.loadModels(ctx, e)
	case s.preset != "":
		e, err := s.app.FindEndpoint(s.preset)
		if err == nil {
			s.app.LoadModels(ctx, &e)
		}
		return e, cmp.Or(err, ctx.Err())
	}
	s.printLines(s.printer.T("Looking for keys in the environment and for servers on this machine…"))
	all := s.app.ListEndpoints(ctx)
	if ctx.Err() != nil {
		return app.Endpoint{}, ctx.Err()
	}
	for _, e := range all {
		if e.IsExpectedMissing() {
			s.printLines(notFoundMessage(s.printer, e))
		}
	}
	found := slices.DeleteFunc(all, func(e app.Endpoint) bool { return !e.IsFound() })
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
		chosen, err := s.choose(ctx, s.endpointPicker(found))
		if err != nil {
			return app.Endpoint{}, err
		}
		e, err := s.openChosen(ctx, chosen, found)
		var leave *exitError
		switch {
		case ctx.Err() != nil, err == nil, errors.As(err, &leave) && leave.code == ExitInterrupted:
			return e, cmp.Or(ctx.Err(), err)
		case !errors.Is(err, errNoAnswer):
			s.printLines(s.printer.Translate(errorMessage(err)))
		}
	}
}

// itemOtherAddress is the item for an address that is not listed.
const itemOtherAddress = "other"

// endpointPicker lists the endpoints found, and the vendors.
func (s *setupFlow) endpointPicker(found []app.Endpoint) lineedit.Picker {
	p := lineedit.Picker{Title: s.printer.T("Provider: "), IsSecret: app.LooksLikeKey}
	add := func(text, note, value string) {
		p.Items = append(p.Items, lineedit.Item{Choice: lineedit.Choice{Text: text, Note: note}, Value: value})
	}
	dot := s.printer.DisplaySigns(" · ")
	for i, e := range found {
		note := s.printer.T(display.Plural(len(e.Models), "%d model", "%d models"), len(e.Models))
		if e.Err != nil {
			note = s.printer.TranslateError(e.Err)
		}
		if e.KeyVar != "" {
			note += dot + s.printer.T("key from %s", e.KeyVar)
		}
		add(e.Title, singleLine(publicAddress(e))+dot+note, strconv.Itoa(i))
	}
	for _, preset := range config.Presets() {
		known := slices.ContainsFunc(found, func(e app.Endpoint) bool { return e.Provider.Preset == preset.Name })
		if !known && !preset.Local {
			add(preset.Title, s.printer.T("needs an API key"), preset.Name)
		}
	}
	add(s.printer.T("another address"), s.printer.T("any OpenAI-compatible server, such as https://host/v1"),
		itemOtherAddress)
	p.ItemFromText = func(query string) (lineedit.Item, bool) {
		switch {
		case app.LooksLikeKey(query):
			return lineedit.Item{}, false
		case config.FindPreset(query).Name != "", strings.ContainsAny(query, ".:/"):
			return lineedit.Item{Choice: lineedit.Choice{Text: query, Note: s.printer.T("use this address")}, Value: query}, true
		}
		return lineedit.Item{}, false
	}
	return p
}

// openChosen returns the endpoint of an item, with its key and its models.
func (s *setupFlow) openChosen(ctx context.Context, value string, found []app.Endpoint) (e app.Endpoint, err error) {
	preset := config.FindPreset(value)
	usual, _ := preset.FindAddress(s.app.Env.Getenv)
	switch i, notNumber := strconv.Atoi(value); {
	case notNumber == nil && i < len(found):
		e = found[i]
		if e.RejectsKey() {
			e, err = s.askKey(ctx, e)
		}
		return e, err
	case value == itemOtherAddress:
		if value, err = s.askLine(ctx, s.printer.T("Address: ")); err != nil || value == "" {
			return e, cmp.Or(err, errNoAnswer)
		}
		e, err = s.app.FindEndpointWithoutKey(value)
	case preset.Name != "" && usual == "":
		if value, err = s.askLine(ctx, s.printer.T("Address of your %s resource: ", preset.Title)); err != nil {
			return e, err
		}
		e, err = s.app.PresetEndpoint(preset, value)
	default:
		e, err = s.app.FindEndpointWithoutKey(value)
	}
	if err != nil {
		return e, err
	}
	return s.loadModels(ctx, e)
}

// loadModels asks an endpoint for its models, and you for the key if it needs one.
func (s *setupFlow) loadModels(ctx context.Context, e app.Endpoint) (app.Endpoint, error) {
	if e.LacksKey() {
		return s.askKey(ctx, e)
	}
	s.app.LoadModels(ctx, &e)
	switch {
	case ctx.Err() != nil:
		return e, ctx.Err()
	case e.RejectsKey():
		return s.askKey(ctx, e)
	case e.IsUnreachable():
		s.printLines(s.printer.TranslateError(e.Err))
		yes, err := s.confirm(ctx, s.printer.T("Use this address anyway? [y/N] "), false)
		if err == nil && !yes {
			err = errNoAnswer
		}
		return e, err
	}
	return e, nil
}

// askKey asks for an endpoint's key until the server accepts one. Enter alone leaves.
func (s *setupFlow) askKey(ctx context.Context, e app.Endpoint) (app.Endpoint, error) {
	question := s.printer.T("API key (hidden): ")
	if page := config.FindPreset(e.Provider.Preset).KeyPage; page != "" {
		question = s.printer.T("API key (hidden; make one at %s): ", page)
	}
	if e.RejectsKey() {
		s.printKeyRejected(e)
	}
	for {
		key, err := s.askSecret(ctx, question)
		if err != nil {
			return e, err
		}
		if key == "" {
			return e, errNoAnswer
		}
		e.Provider.APIKey, e.Provider.APIKeyCommand, e.Provider.KeyStore, e.KeyVar, s.saveKey = key, nil, "", "", true
		e.Models, e.Err = nil, nil
		s.app.MaskKey(key)
		s.app.LoadModels(ctx, &e)
		switch {
		case ctx.Err() != nil:
			return e, ctx.Err()
		case e.RejectsKey():
			s.printKeyRejected(e)
			continue
		case e.Err == nil:
			s.printLines(s.printer.T(display.Plural(len(e.Models), "The key works: %d model.", "The key works: %d models."),
				len(e.Models)))
		}
		return e, nil
	}
}

// printKeyRejected says which key the endpoint's server did not accept.
func (s *setupFlow) printKeyRejected(e app.Endpoint) {
	switch {
	case e.KeyVar != "":
		s.printLines(s.printer.T("The server rejected the API key from %s.", e.KeyVar))
	case e.Provider.APIKey != "":
		s.printLines(s.printer.T("The server rejected this API key."))
	default:
		s.printLines(s.printer.T("The server wants an API key."))
	}
}

// chooseModel returns the named model, or the one that the user chooses. Without a user it is the
// endpoint's usual model, or its first.
func (s *setupFlow) chooseModel(ctx context.Context, e app.Endpoint) (string, error) {
	if s.model != "" {
		return s.model, nil
	}
	usual := e.Provider.Model
	if has := slices.ContainsFunc(e.Models, func(o app.ModelOffer) bool { return o.Name == usual }); !has &&
		len(e.Models) > 0 {
		usual = e.Models[0].Name
	}
	if !s.interactive {
		if usual == "" {
			why := errors.New("no models listed")
			if e.Err != nil {
				why = e.Err
			}
			return "", inputErrorf("choose a model with --model: %v", why)
		}
		return usual, nil
	}
	if e.Err != nil {
		s.printLines(s.printer.T("the endpoint does not list its models: %s", s.printer.TranslateError(e.Err)))
	}
	if len(e.Models) > 0 {
		return s.choose(ctx, s.modelPicker(e.Models, usual))
	}
	for {
		question := s.printer.T("Which model? ")
		if usual != "" {
			question = s.printer.T("Which model? [%s] ", singleLine(usual))
		}
		answer, err := s.askLine(ctx, question)
		if answer = cmp.Or(answer, usual); err != nil || answer != "" {
			return answer, err
		}
	}
}

// modelPicker lists the models with their windows and prices.
func (s *setupFlow) modelPicker(all []app.ModelOffer, usual string) lineedit.Picker {
	p := lineedit.Picker{Title: s.printer.T("Model: ")}
	for _, o := range all {
		var about []string
		if o.Window > 0 {
			about = append(about, s.printer.T("window %s", formatTokens(o.Window)))
		}
		if o.Price.Known {
			about = append(about, s.printer.T("$%.2f in, $%.2f out per 1M", o.Price.In, o.Price.Out))
		}
		p.Items = append(p.Items, lineedit.Item{Choice: lineedit.Choice{Text: o.Name,
			Note: strings.Join(about, s.printer.DisplaySigns(" · "))}, Value: o.Name})
	}
	p.Select(usual)
	p.ItemFromText = func(query string) (lineedit.Item, bool) {
		return lineedit.Item{Choice: lineedit.Choice{Text: query, Note: s.printer.T("not in the list; use it anyway")},
			Value: query}, true
	}
	return p
}

// formatTokens abbreviates a number of tokens.
func formatTokens(n int) string {
	switch {
	case n >= 1_000_000:
		return strconv.FormatFloat(float64(n/100_000)/10, 'f', -1, 64) + "M"
	case n >= 1000:
		return strconv.Itoa(n/1000) + "k"
	}
	return strconv.Itoa(n)
}

// testModel sends the model a test request, and asks the user what to do if it fails. A key that the server
// rejects only here is requested again.
func (s *setupFlow) testModel(ctx context.Context, e app.Endpoint, model string) (app.Endpoint, error) {
	for {
		s.printLines(s.printer.T("Testing %s at %s…", model, singleLine(publicAddress(e))))
		answer, window, err := s.app.TryModel(ctx, e, model)
		switch {
		case ctx.Err() != nil:
			return e, ctx.Err()
		case err == nil && window > 0:
			s.printLines(s.printer.T("It works: %s (window: %d tokens)", answer, window))
			return e, nil
		case err == nil:
			s.printLines(s.printer.T("It works: %s", answer))
			return e, nil
		case !s.interactive && !s.assumeYes:
			return e, message.Errorf("the test failed, and nothing was written: %w", err)
		}
		s.printLines(s.printer.T("It does not answer: %s", s.printer.TranslateError(err)))
		if s.assumeYes {
			return e, nil
		}
		if errors.Is(err, provider.ErrAuth) {
			e.Err = err
			if e, err = s.askKey(ctx, e); err != nil {
				return e, err
			}
			continue
		}
		anyway, err := s.confirm(ctx, s.printer.T("Save it anyway? [y/N] "), false)
		if err == nil && !anyway {
			err = errNoAnswer
		}
		return e, err
	}
}
