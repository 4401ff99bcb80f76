package app

import (
	"fmt"
	"time"

	"coder/internal/core/display"
	"coder/internal/model/catalogue"
	"coder/internal/model/meter"
)

// sessionBudget returns a session's budget. An invalid duration was reported when the settings were checked.
func (a *Models) sessionBudget() meter.Budget {
	b := a.Config.Runtime.Budget
	limit, _ := time.ParseDuration(b.Duration)
	return meter.Budget{USD: b.USD, Tokens: b.Tokens, Time: limit}
}

func (a *Models) newMeter() *meter.Meter {
	price := func(model string) catalogue.Price { return a.modelPrice(a.endpoint(), model) }
	return meter.New(meter.Options{Budget: a.sessionBudget(), Price: price, Now: a.Env.Now})
}

// checkBudget rejects a budget that coder could not enforce.
func (a *Models) checkBudget() error {
	if d := a.Config.Runtime.Budget.Duration; d != "" {
		if limit, err := time.ParseDuration(d); err != nil || limit <= 0 {
			return configErrorf("runtime.budget.duration: %q is not a duration; write it like 30m or 1h30m", d)
		}
	}
	if daily, _, _ := a.dailyLimit(); a.sessionBudget().USD == 0 && daily == 0 {
		return nil
	}
	for _, model := range append([]string{a.ModelName()}, a.endpoint().FallbackModels...) {
		if !a.modelPrice(a.endpoint(), model).Known {
			return &Error{KindConfig, meter.UnknownPriceError(model)}
		}
	}
	return nil
}

// spentRow returns the row of /status with what the session has used.
func (a *Models) spentRow(m *meter.Meter) []display.Cell {
	used, took := m.Spent()
	money := meter.FormatUSD(used.Cost)
	b := a.sessionBudget()
	if used.Unpriced {
		money = "≥" + money
	}
	parts := []any{money, fmt.Sprint(used.In + used.Out), display.FormatDuration(took)}
	for i, bound := range []string{meter.FormatUSD(b.USD), fmt.Sprintf("%d", b.Tokens), display.FormatDuration(b.Time)} {
		if [...]bool{b.USD > 0, b.Tokens > 0, b.Time > 0}[i] {
			parts[i] = fmt.Sprint(parts[i], " / ", bound)
		}
	}
	if m.MissedUsage() && used.In+used.Out == 0 && b == (meter.Budget{}) {
		return display.TextCells("spent", fmt.Sprintf("not reported by the provider, in %s", parts[2]))
	}
	unpriced := used.Unpriced || !a.modelPrice(a.endpoint(), a.ModelName()).Known
	if unpriced && used.Cost == 0 && b.USD == 0 {
		return display.TextCells("spent", fmt.Sprintf("unknown price, %s tokens, in %s", parts[1:]...))
	}
	return display.TextCells("spent", fmt.Sprintf("%s, %s tokens, in %s", parts...))
}
