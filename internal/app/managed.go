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
	"coder/internal/core/message"
	"coder/internal/model/meter"
	"coder/internal/model/provider"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
	"coder/internal/report/usage"
	"coder/internal/tool/mcp"
)

// isPermitted reports whether no file of managed settings switches a feature off.
func (s *Settings) isPermitted(what func(config.ManagedLimits) *bool) bool {
	return !slices.ContainsFunc(s.Report.Limits, func(l config.ManagedLimits) bool {
		on := what(l)
		return on != nil &&
			!*on
	})
}

// checkAllowed returns an error unless each file of managed settings with a list for what has a matching pattern.
func (s *Settings) checkAllowed(what, name string, list func(config.ManagedLimits) []string,
	matches func(pattern string) bool) error {
	for _, l := range s.Report.Limits {
		if patterns := list(l); patterns != nil && !slices.ContainsFunc(patterns, matches) {
			return configErrorf("%s %s is not allowed by managed settings (%s)", what, singleLine(name), l.Origin)
		}
	}
	return nil
}

func (s *Settings) checkMode(name string) error {
	return s.checkAllowed("mode", name, func(l config.ManagedLimits) []string { return l.Modes },
		func(allowed string) bool { return allowed == name })
}

// checkModel returns an error if managed settings do not allow a model.
func (s *Settings) checkModel(name string) error {
	return s.checkAllowed("model", name, func(l config.ManagedLimits) []string { return l.Models },
		func(pattern string) bool { return matchesPattern(pattern, name) })
}

// checkEndpoint returns an error if managed settings do not allow the host of an endpoint.
func (s *Settings) checkEndpoint(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil // no endpoint yet
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	target, err := hostnames.NewTarget(u.Hostname(), port)
	return s.checkAllowed("endpoint", u.Host, func(l config.ManagedLimits) []string { return l.Endpoints },
		func(pattern string) bool {
			p, bad := hostnames.Parse(pattern)
			return err == nil && bad == nil && p.Matches(target)
		})
}

func (s *Settings) checkServer(m mcp.Server) error {
	where := m.DisplayAddress()
	return s.checkAllowed("MCP server", where, func(l config.ManagedLimits) []string { return l.MCP },
		func(pattern string) bool { return matchesPattern(pattern, where) })
}

// matchesPattern reports whether a text matches a pattern, in which a star matches any text.
func matchesPattern(pattern, text string) bool {
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

// startMode returns the initial mode, and the modes that managed settings do not allow. If they do not
// allow the mode of the settings, it returns a stricter one; a mode from the command line is refused instead.
func (a *Site) startMode(wanted string) (start string, barred []string, err error) {
	strictest := []string{mode.Yolo, mode.AutoEdit, mode.Build, mode.Default, mode.Plan}
	barred = slices.DeleteFunc(slices.Clone(strictest), func(name string) bool { return a.checkMode(name) == nil })
	refused := a.checkMode(wanted)
	if refused == nil || !slices.Contains(strictest, wanted) {
		return wanted, barred, nil
	}
	for _, name := range strictest[slices.Index(strictest, wanted):] {
		if a.Options.Mode == "" && a.checkMode(name) == nil {
			a.warn(fmt.Sprintf("%v; starting in %s", refused, name))
			return name, barred, nil
		}
	}
	return "", nil, refused
}

// managedDenials returns the calls that managed settings deny.
func (a *Site) managedDenials() (specs []rule.Spec, err error) {
	for _, l := range a.Report.Limits {
		for _, text := range l.Deny {
			list, err := rule.ParseSpecs(text)
			if err != nil {
				return nil, configErrorf("%s: managed.deny: %v", l.Origin, err)
			}
			for _, s := range NormalizeSpecs(list) {
				s.From = l.Origin.String()
				specs = append(specs, s)
			}
		}
	}
	return specs, nil
}

// RetentionDays returns for how many days managed settings keep sessions.
func (s *Settings) RetentionDays() (days int) {
	for _, l := range s.Report.Limits {
		days = max(days, l.KeepDays)
	}
	return days
}

// dailyLimit returns what a user may spend on one day; 0 means no limit.
func (s *Settings) dailyLimit() (usd float64, tokens int, from config.Origin) {
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

// checkRecordRequired rejects a run that saves nothing if managed settings need its record.
func (a *Site) checkRecordRequired() error {
	usd, tokens, _ := a.dailyLimit()
	if a.Options.Ephemeral && (a.RetentionDays() > 0 || usd > 0 || tokens > 0) {
		return configErrorf("--no-session-persistence is not allowed by managed settings: they keep or count sessions")
	}
	return nil
}

// checkLocked returns an error if managed settings would override a value of a setting.
func (s *Settings) checkLocked(key, value string) error {
	v, err := config.ParseValue(key, value)
	if err != nil {
		return nil // the error is reported elsewhere
	}
	switch key {
	case "agents.default":
		err = s.checkMode(value)
	case "provider.model":
		err = s.checkModel(value)
	case "provider.base_url":
		err = s.checkEndpoint(value)
	default:
		err = s.Report.CheckLocked(key, v)
	}
	if err != nil {
		return inputErrorf("not saved: %v", err)
	}
	return nil
}

// managedProvider sends requests only to models that managed settings allow, and only within the day's budget.
type managedProvider struct {
	provider.Provider
	models *Models
	meter  *meter.Meter
}

func (l managedProvider) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	err := l.models.checkModel(req.Model)
	if err == nil {
		err = l.models.spending.checkLimit(ctx, l.models, l.meter)
	}
	if err != nil {
		return func(yield func(provider.Delta, error) bool) { yield(nil, err) }
	}
	return l.Provider.Stream(ctx, req)
}

// dailySpending is the recorded usage of all the user's sessions today.
type dailySpending struct {
	mu          sync.Mutex // guards the fields below
	readAt      time.Time  // when the records were read
	sum         usage.Sum
	sessionThen chat.Usage // this session's at that time
}

// spendingMaxAge is the maximum age of a sum over all sessions.
const spendingMaxAge = time.Minute

// checkLimit returns an error if the day's budget is used up. It counts
// recorded usage, so the last request may exceed the budget.
func (s *dailySpending) checkLimit(ctx context.Context, a *Models, m *meter.Meter) error {
	usd, tokens, from := a.dailyLimit()
	if usd == 0 && tokens == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := a.Env.Now()
	used, _ := m.Spent()
	if y, mo, d := now.Date(); now.Sub(s.readAt) > spendingMaxAge || s.readAt.Day() != d {
		midnight := time.Date(y, mo, d, 0, 0, 0, 0, now.Location())
		t := &usage.Tally{By: usage.Day, Since: midnight, Location: now.Location(), WithCost: a.WithCost}
		if err := a.Usage(ctx, t); err != nil {
			return err
		}
		_, s.sum = t.Sums()
		s.readAt, s.sessionThen = now, used
	}
	cost := s.sum.Cost + used.Cost - s.sessionThen.Cost
	count := s.sum.In + s.sum.Out + used.In + used.Out - s.sessionThen.In - s.sessionThen.Out
	switch {
	case usd > 0 && cost >= usd:
		return message.Errorf("%w: your sessions used %s of %s today (%s)",
			meter.ErrBudget, meter.FormatUSD(cost), meter.FormatUSD(usd), from)
	case tokens > 0 && count >= tokens:
		return message.Errorf("%w: your sessions used %d of %d tokens today (%s)", meter.ErrBudget, count, tokens, from)
	}
	return nil
}
