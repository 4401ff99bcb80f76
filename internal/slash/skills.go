package slash

import (
	"context"
	"slices"

	"coder/internal/authored/skills"
	"coder/internal/core/display"
)

// Skills lists the available skills.
func Skills(catalogue *skills.Catalogue) Command {
	return Command{Name: "skills", ShowsOnly: true, Help: "list the skills",
		Run: func(context.Context, call) (outcome, error) {
			catalogue.Refresh()
			skills, bad := catalogue.List()
			var (
				items    []Item
				warnings []string
			)
			for _, s := range skills {
				items = append(items, Item{s.Name, s.DisplayText(), s.Path != ""})
			}
			for _, w := range bad {
				warnings = append(warnings, w.String())
			}
			blocks := showItems(items, warnings)
			if len(items) == 0 {
				blocks = slices.Insert(blocks, 0,
					display.Block(display.Text("no skills; a skill is a folder with a SKILL.md in .coder/skills")))
			}
			return show(blocks...)
		}}
}
