package app

import (
	"fmt"
	"time"

	"coder/internal/core/display"
	"coder/internal/model/catalogue"
	"coder/internal/model/meter"
)

// budget returns a session's budget. An invalid duration was reported when the settings were checked.
func (a *Models) budget() meter.Budget {
	b := a.Config.Runtime.Budget
	limit, _ := time.ParseDuration(b.Duration)
	return meter.Budget{USD: b.USD, Tokens: b.Tokens, Time: limit}
}

func (a *Models) newMeter() *meter.Meter {
	price := func(model string) catalogue.Price { return a.price(a.endpoint(), model) }
	return meter.New(meter.Options{Budget: a.budget(), Price: price, Now: a.Env.Now})
}

// checkBudget rejects a budget that coder could not enforce.
func (a *Models) checkBudget() error {
	if d := a.Config.Runtime.Budget.Duration; d != "" {
		if limit, err := time.ParseDuration(d); err != nil || limit <= 0 {
			return configf("runtime.budget.duration: %q is not a duration; write it like 30m or 1h30m", d)
		}
	}
	if daily, _, _ := a.daily(); a.budget().USD == 0 && daily == 0 {
		return nil
	}
	for _, model := range append([]string{a.ModelName()}, a.endpoint().FallbackModels...) {
		if !a.price(a.endpoint(), model).Known {
			return &Error{BadConfig, meter.UnknownPrice(model)}
		}
	}
	return nil
}

// spent returns the row of /status with what the session has used.
func (a *Models) spent(m *meter.Meter) []display.Cell {
	used, took := m.Spent()
	money := meter.Dollars(used.Cost)
	b := a.budget()
	if used.Unpriced {
		money = "≥" + money
	}
	parts := []any{money, fmt.Sprint(used.In + used.Out), display.Duration(took)}
	for i, bound := range []string{meter.Dollars(b.USD), fmt.Sprintf("%d", b.Tokens), display.Duration(b.Time)} {
		if [...]bool{b.USD > 0, b.Tokens > 0, b.Time > 0}[i] {
			parts[i] = fmt.Sprint(parts[i], " / ", bound)
		}
	}
	if m.Silent() && used.In+used.Out == 0 && b == (meter.Budget{}) {
		return display.Words("spent", fmt.Sprintf("not reported by the provider, in %s", parts[2]))
	}
	unpriced := used.Unpriced || !a.price(a.endpoint(), a.ModelName()).Known
	if unpriced && used.Cost == 0 && b.USD == 0 {
		return display.Words("spent", fmt.Sprintf("unknown price, %s tokens, in %s", parts[1:]...))
	}
	return display.Words("spent", fmt.Sprintf("%s, %s tokens, in %s", parts...))
}
