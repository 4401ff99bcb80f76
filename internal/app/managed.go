package app

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/config"
	"coder/internal/core/chat"
	hostnames "coder/internal/core/hosts"
	"coder/internal/model/meter"
	"coder/internal/model/provider"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
	"coder/internal/report/usage"
	"coder/internal/tool/mcp"
)

// permits reports whether no file of managed settings switches a feature off.
func (s *Settings) permits(what func(config.Limits) *bool) bool {
	return !slices.ContainsFunc(s.Report.Limits, func(l config.Limits) bool { on := what(l); return on != nil && !*on })
}

// allowed returns an error unless each file of managed settings with a list for what has a matching pattern.
func (s *Settings) allowed(what, name string, list func(config.Limits) []string, matches func(pattern string) bool) error {
	for _, l := range s.Report.Limits {
		if patterns := list(l); patterns != nil && !slices.ContainsFunc(patterns, matches) {
			return configf("%s %s is not allowed by managed settings (%s)", what, oneLine(name), l.Origin)
		}
	}
	return nil
}

func (s *Settings) allowsMode(name string) error {
	return s.allowed("mode", name, func(l config.Limits) []string { return l.Modes },
		func(allowed string) bool { return allowed == name })
}

// allowsModel returns an error if managed settings do not allow a model.
func (s *Settings) allowsModel(name string) error {
	return s.allowed("model", name, func(l config.Limits) []string { return l.Models },
		func(pattern string) bool { return fits(pattern, name) })
}

// allowsEndpoint returns an error if managed settings do not allow the host of an endpoint.
func (s *Settings) allowsEndpoint(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil // no endpoint yet
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	target, err := hostnames.NewTarget(u.Hostname(), port)
	return s.allowed("endpoint", u.Host, func(l config.Limits) []string { return l.Endpoints }, func(pattern string) bool {
		p, bad := hostnames.Parse(pattern)
		return err == nil && bad == nil && p.Matches(target)
	})
}

func (s *Settings) allowsServer(m mcp.Server) error {
	where := m.Where()
	return s.allowed("MCP server", where, func(l config.Limits) []string { return l.MCP },
		func(pattern string) bool { return fits(pattern, where) })
}

// fits reports whether a text matches a pattern, in which a star matches any text.
func fits(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	if len(parts) == 1 {
		return text == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// allowedMode returns the initial mode, and the modes that managed settings do not allow. If they do not
// allow the mode of the settings, it returns a stricter one; a mode from the command line is refused instead.
func (a *Site) allowedMode(wanted string) (start string, barred []string, err error) {
	strictest := []string{mode.Yolo, mode.AutoEdit, mode.Build, mode.Default, mode.Plan}
	barred = slices.DeleteFunc(slices.Clone(strictest), func(name string) bool { return a.allowsMode(name) == nil })
	refused := a.allowsMode(wanted)
	if refused == nil || !slices.Contains(strictest, wanted) {
		return wanted, barred, nil
	}
	for _, name := range strictest[slices.Index(strictest, wanted):] {
		if a.Options.Mode == "" && a.allowsMode(name) == nil {
			a.warn(fmt.Sprintf("%v; starting in %s", refused, name))
			return name, barred, nil
		}
	}
	return "", nil, refused
}

// denied returns the calls that managed settings deny.
func (a *Site) denied() (specs []rule.Spec, err error) {
	for _, l := range a.Report.Limits {
		for _, text := range l.Deny {
			list, err := rule.ParseSpecs(text)
			if err != nil {
				return nil, configf("%s: managed.deny: %v", l.Origin, err)
			}
			for _, s := range Ours(list) {
				s.From = l.Origin.String()
				specs = append(specs, s)
			}
		}
	}
	return specs, nil
}

// KeepDays returns for how many days managed settings keep sessions.
func (s *Settings) KeepDays() (days int) {
	for _, l := range s.Report.Limits {
		days = max(days, l.KeepDays)
	}
	return days
}

// daily returns what a user may spend on one day; 0 means no limit.
func (s *Settings) daily() (usd float64, tokens int, from config.Origin) {
	for _, l := range s.Report.Limits {
		if l.DayUSD > 0 && (usd == 0 || l.DayUSD < usd) {
			usd, from = l.DayUSD, l.Origin
		}
		if l.DayTokens > 0 && (tokens == 0 || l.DayTokens < tokens) {
			tokens, from = l.DayTokens, l.Origin
		}
	}
	return usd, tokens, from
}

// checkKept rejects a run that saves nothing if managed settings need its record.
func (a *Site) checkKept() error {
	usd, tokens, _ := a.daily()
	if a.Options.Ephemeral && (a.KeepDays() > 0 || usd > 0 || tokens > 0) {
		return configf("--no-session-persistence is not allowed by managed settings: they keep or count sessions")
	}
	return nil
}

// locked returns an error if managed settings would override a value of a setting.
func (s *Settings) locked(key, value string) error {
	v, err := config.Value(key, value)
	if err != nil {
		return nil // the error is reported elsewhere
	}
	switch key {
	case "agents.default":
		err = s.allowsMode(value)
	case "provider.model":
		err = s.allowsModel(value)
	case "provider.base_url":
		err = s.allowsEndpoint(value)
	default:
		err = s.Report.Locked(key, v)
	}
	if err != nil {
		return inputf("not saved: %v", err)
	}
	return nil
}

// limited sends requests only to models that managed settings allow, and only within the day's budget.
type limited struct {
	provider.Provider
	models *Models
	meter  *meter.Meter
}

func (l limited) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	err := l.models.allowsModel(req.Model)
	if err == nil {
		err = l.models.spending.check(ctx, l.models, l.meter)
	}
	if err != nil {
		return func(yield func(provider.Delta, error) bool) { yield(nil, err) }
	}
	return l.Provider.Stream(ctx, req)
}

// spending is the recorded usage of all the user's sessions today.
type spending struct {
	mu   sync.Mutex // guards the fields below
	at   time.Time  // when the records were read
	sum  usage.Sum
	then chat.Usage // this session's at that time
}

// recount is the maximum age of a sum over all sessions.
const recount = time.Minute

// check returns an error if the day's budget is used up. It counts
// recorded usage, so the last request may exceed the budget.
func (s *spending) check(ctx context.Context, a *Models, m *meter.Meter) error {
	usd, tokens, from := a.daily()
	if usd == 0 && tokens == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := a.Env.Now()
	used, _ := m.Spent()
	if y, mo, d := now.Date(); now.Sub(s.at) > recount || s.at.Day() != d {
		midnight := time.Date(y, mo, d, 0, 0, 0, 0, now.Location())
		t := &usage.Tally{By: usage.Day, Since: midnight, Zone: now.Location(), Priced: a.Priced}
		if err := a.Usage(ctx, t); err != nil {
			return err
		}
		_, s.sum = t.Sums()
		s.at, s.then = now, used
	}
	cost := s.sum.Cost + used.Cost - s.then.Cost
	count := s.sum.In + s.sum.Out + used.In + used.Out - s.then.In - s.then.Out
	switch {
	case usd > 0 && cost >= usd:
		return fmt.Errorf("%w: your sessions used %s of %s today (%s)",
			meter.ErrBudget, meter.Dollars(cost), meter.Dollars(usd), from)
	case tokens > 0 && count >= tokens:
		return fmt.Errorf("%w: your sessions used %d of %d tokens today (%s)", meter.ErrBudget, count, tokens, from)
	}
	return nil
}
