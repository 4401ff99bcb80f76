package slash

import (
	"context"

	"coder/internal/authored/skills"
)

// Skills lists the skills there are.
func Skills(catalogue *skills.Catalogue) Command {
	return Command{Name: "skills", Help: "list the skills there are", Run: func(context.Context, call) (outcome, error) {
		catalogue.Refresh()
		skills, bad := catalogue.List()
		var (
			items    []Item
			warnings []string
		)
		for _, s := range skills {
			items = append(items, Item{s.Name, s.About()})
		}
		for _, w := range bad {
			warnings = append(warnings, w.String())
		}
		return say(listed(items, warnings, "there are no skills; one is a folder with a SKILL.md in .coder/skills"))
	}}
}
