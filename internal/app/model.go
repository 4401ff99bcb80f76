package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/config"
	"coder/internal/core/display"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/model/catalogue"
	"coder/internal/policy/trust"
)

// modelChoice is the models there are to choose from.
type modelChoice struct{ *App }

// Switch takes another model from the next turn on, and tries to have
// later sessions start with it. What it says is why they may not.
func (a modelChoice) Switch(name string) (notice string) {
	a.chosen.Store(&name)
	if err := a.saveModel(name); err != nil {
		return fmt.Sprintf("the model is in use, but the choice could not be saved: %v", err)
	}
	if o := a.Report.Origin("provider.model"); strings.HasPrefix(o.Source, "env ") || o.Source != "" && o.Source == a.configFile {
		return fmt.Sprintf("the choice is saved, but %s comes first when the program starts", o.Source)
	}
	return ""
}

// saveModel writes the model into the project's own settings and leaves the
// rest of them as they are. Trust in the project outlives that change, since
// it is the person's own.
func (a *App) saveModel(name string) error {
	if a.Options.Ephemeral {
		return errors.New("nothing is kept with --no-session-persistence")
	}
	root := a.Project
	path := filepath.Join(root, ".coder", "config.json")
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	text, err := repofile.Below(root).Read(filepath.Join(".coder", "config.json"), maxNamedFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if text, err = config.Set(text, "provider.model", name); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	trusted, _ := a.Trust.Of(root) // what cannot be read is not trusted
	if err := atomicfile.Write(path, text, mode); err != nil {
		return err
	}
	if trusted == trust.Trusted {
		return a.Trust.Give(root)
	}
	return nil
}

// listTime is how long the endpoint may take to say which models it has.
const listTime = 5 * time.Second

// mostModels is how many models are listed.
const mostModels = 200

// List shows what there is to choose from: the model in use, those of the
// settings, and those the endpoint offers.
func (a modelChoice) List(ctx context.Context) (display.Table, error) {
	now := a.ModelName()
	offered, err := a.offered(ctx)
	names := slices.Concat([]string{now}, a.Config.Provider.Models, a.Config.Provider.FallbackModels, offered)
	t := display.Table{Head: display.Words("", "model", "context", "in $/M", "out $/M", "can")}
	for i, name := range names {
		if name == "" || slices.Index(names, name) < i {
			continue
		}
		if len(t.Rows) == mostModels {
			t.Rows = append(t.Rows, display.Words("", fmt.Sprintf("and %d more", len(names)-i)))
			break
		}
		t.Rows = append(t.Rows, a.modelRow(name, name == now))
	}
	return t, err
}

// offered asks the endpoint for its models.
func (a *App) offered(ctx context.Context) ([]string, error) {
	if a.scripted() || a.Config.Provider.BaseURL == "" {
		return nil, nil
	}
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, listTime)
	defer stop()
	return client.Models(ctx)
}

func (a *App) modelRow(name string, inUse bool) []display.Cell {
	m := a.figures(name)
	mark, in, out := "", "?", "?"
	if inUse {
		mark = "*"
	}
	if m.Price.Known {
		in, out = fmt.Sprintf("%.2f", m.Price.In), fmt.Sprintf("%.2f", m.Price.Out)
	}
	return slices.Concat(display.Data(mark, oneLine(name), strconv.Itoa(m.Context), in, out), display.Words(abilities(m)))
}

func abilities(m catalogue.Model) string {
	var can []string
	for _, a := range []struct {
		has  bool
		name string
	}{{m.Tools, "tools"}, {m.Vision, "pictures"}, {m.Reasoning, "thinking"}} {
		if a.has {
			can = append(can, a.name)
		}
	}
	return strings.Join(can, ", ")
}

// figures is what is known of a model; what the person wrote comes first.
func (a *App) figures(name string) catalogue.Model {
	m, _ := catalogue.Lookup(name, a.own()...)
	return m
}

// modelInfo is an entry of provider.model_info.
type modelInfo struct {
	Context     int      `json:"context"`
	Output      int      `json:"output"`
	PriceIn     *float64 `json:"price_in"`
	PriceOut    *float64 `json:"price_out"`
	PriceCached float64  `json:"price_cached"`
	Vision      bool     `json:"vision"`
	Tools       bool     `json:"tools"`
	Reasoning   bool     `json:"reasoning"`
}

// own are the person's own figures. An entry that cannot be read is none; it
// was told of when the settings were checked.
func (a *App) own() (all []catalogue.Model) {
	for name, raw := range a.Config.Provider.ModelInfo {
		var i modelInfo
		if json.Unmarshal(raw, &i) != nil {
			continue
		}
		m := catalogue.Model{Name: name, Context: i.Context, Output: i.Output, Vision: i.Vision, Tools: i.Tools, Reasoning: i.Reasoning}
		if i.PriceIn != nil && i.PriceOut != nil {
			m.Price = catalogue.Price{In: *i.PriceIn, Out: *i.PriceOut, CachedIn: i.PriceCached, Known: true}
		}
		all = append(all, m)
	}
	return all
}

// checkModelInfo refuses figures that cannot be read.
func (a *App) checkModelInfo() error {
	for name, raw := range a.Config.Provider.ModelInfo {
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.DisallowUnknownFields()
		var i modelInfo
		if err := d.Decode(&i); err != nil {
			return configf("provider.model_info.%s: %v", name, err)
		}
		if (i.PriceIn == nil) != (i.PriceOut == nil) {
			return configf("provider.model_info.%s: price_in and price_out belong together", name)
		}
	}
	return nil
}

// contextLimit is how many tokens the model in use takes in.
func (a *App) contextLimit() int {
	if n := a.Config.Runtime.ContextTokenLimit; n > 0 {
		return n
	}
	return a.figures(a.ModelName()).Context
}
