package orchestrator

import (
	"context"
	"strings"

	"coder/internal/show"
)

func skillsCommand() command {
	return command{name: "skills", help: "list the skills there are", run: func(_ context.Context, in invocation) (string, error) {
		if in.Lore == nil || in.Lore.Skills == nil {
			return "", notHere("skills")
		}
		in.Lore.Skills.Refresh()
		skills, warnings := in.Lore.Skills.List()
		var l Listing
		for _, s := range skills {
			l.Items = append(l.Items, Item{s.Name, s.About()})
		}
		for _, w := range warnings {
			l.Warnings = append(l.Warnings, w.String())
		}
		return listed(l, "there are no skills; one is a folder with a SKILL.md in .coder/skills"), nil
	}}
}

// listed writes a list down, or says none where it is empty.
func listed(l Listing, none string) string {
	text := none
	if len(l.Items) > 0 {
		var t show.Table
		for _, item := range l.Items {
			t.Rows = append(t.Rows, []string{item.Name, Title(item.About)})
		}
		text = aligned(t)
	}
	for _, w := range l.Warnings {
		text += "\nnot usable: " + w
	}
	return strings.TrimPrefix(text, "\n")
}
