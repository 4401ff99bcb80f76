package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/ui/i18n"
)

// runModels lists the available models by endpoint.
func (inv *invocation) runModels(ctx context.Context, a *app.Workspace) error {
	endpoints := a.ListEndpoints(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if inv.flags.json {
		return inv.printJSON(toEndpointsJSON(endpoints))
	}
	var silent []string // messages about local addresses without a server
	found := 0
	for _, e := range endpoints {
		if !e.IsFound() {
			silent = append(silent, notFoundMessage(inv.printer, e))
			continue
		}
		found++
		if err := inv.printEndpoint(e); err != nil {
			return err
		}
	}
	if found == 0 {
		if err := inv.printWrapped(inv.printer.T("no endpoint is configured, and the environment has no vendor's key; coder setup connects one")); err != nil {
			return err
		}
	}
	for _, line := range silent {
		if err := inv.printWrapped(line); err != nil {
			return err
		}
	}
	return nil
}

// notFoundMessage returns a message about a local address without a server.
func notFoundMessage(words *i18n.Printer, e app.Endpoint) string {
	return words.T("not found on this machine: %s (%s): %s", e.Title, singleLine(e.Provider.Address()),
		words.TranslateError(e.Err))
}

// printEndpoint shows an endpoint and its models.
func (inv *invocation) printEndpoint(e app.Endpoint) error {
	head := e.Title + "  " + singleLine(publicAddress(e))
	if e.KeyVar != "" {
		head += "  " + inv.printer.T("key from %s", e.KeyVar)
	}
	if e.InUse {
		head += "  " + inv.printer.T("(in use)")
	}
	if err := inv.printWrapped(head); err != nil {
		return err
	}
	if e.Err != nil {
		return inv.printWrapped("  " + inv.printer.T("does not list its models: %s",
			inv.printer.TranslateError(e.Err)))
	}
	return inv.printBlocks(modelTable(e.Models))
}

// publicAddress returns an endpoint's address without possible secrets.
func publicAddress(e app.Endpoint) string {
	before, _, _ := strings.Cut(e.Provider.BaseURL, "?")
	if scheme, rest, ok := strings.Cut(before, "://"); ok {
		if _, after, has := strings.Cut(rest, "@"); has {
			return scheme + "://" + after
		}
	}
	return before
}

// maxShownModels is the most models shown of an endpoint.
const maxShownModels = 100

// modelTable returns a table of models.
func modelTable(list []app.ModelOffer) display.Table {
	t := display.Table{Header: display.TextCells("  ", "model", "window", "in $/M", "out $/M")}
	for i, o := range list {
		if i == maxShownModels {
			t.Rows = append(t.Rows, display.TextCells("  ", fmt.Sprintf("and %d more", len(list)-i)))
			break
		}
		mark := "  "
		if o.InUse {
			mark = "* "
		}
		window, in, out := "?", "?", "?"
		if o.Window > 0 {
			window = strconv.Itoa(o.Window)
		}
		if o.Price.Known {
			in, out = fmt.Sprintf("%.2f", o.Price.In), fmt.Sprintf("%.2f", o.Price.Out)
		}
		t.Rows = append(t.Rows, display.DataCells(mark, singleLine(o.Name), window, in, out))
	}
	return t
}

// modelJSON and endpointJSON are the JSON output.
type modelJSON struct {
	Name       string   `json:"name"`
	Window     int      `json:"window,omitzero"`
	PriceIn    *float64 `json:"price_in,omitempty"`
	PriceOut   *float64 `json:"price_out,omitempty"`
	PriceRead  float64  `json:"price_cached,omitzero"`
	PriceWrite float64  `json:"price_cache_write,omitzero"`
	Default    bool     `json:"default"`
}

type endpointJSON struct {
	Name    string      `json:"name"`
	Preset  string      `json:"preset,omitempty"`
	BaseURL string      `json:"base_url"`
	Kind    string      `json:"kind"`
	Key     string      `json:"key_variable,omitempty"`
	InUse   bool        `json:"in_use"`
	Local   bool        `json:"local"`
	Error   string      `json:"error,omitempty"`
	Models  []modelJSON `json:"models"`
}

// endpointList is the endpoints in JSON output.
type endpointList struct {
	Endpoints []endpointJSON `json:"endpoints"`
}

func toEndpointsJSON(list []app.Endpoint) endpointList {
	all := []endpointJSON{}
	for _, e := range list {
		j := endpointJSON{
			Name: e.Title, Preset: e.Provider.Preset, BaseURL: publicAddress(e), Kind: e.Provider.Kind, Key: e.KeyVar,
			InUse: e.InUse, Local: e.Local, Models: []modelJSON{},
		}
		if e.Err != nil {
			j.Error = e.Err.Error()
		}
		for _, o := range e.Models {
			m := modelJSON{Name: o.Name, Window: o.Window, Default: o.InUse}
			if p := o.Price; p.Known {
				m.PriceIn, m.PriceOut, m.PriceRead, m.PriceWrite = &p.In, &p.Out, p.CachedIn, p.CacheWrite
			}
			j.Models = append(j.Models, m)
		}
		all = append(all, j)
	}
	return endpointList{all}
}
