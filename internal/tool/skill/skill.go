// Package skill has the tool by which the model loads a skill: written
// instructions for one kind of task, loaded only on demand.
//
// A missing or broken skill never ends a turn: the model gets an explanation, the user gets a notice,
// and the turn continues without the skill.
package skill

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"path"
	"strings"

	"coder/internal/authored/skills"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/tool"
)

//go:embed skill.md
var doc string

// These limits apply to texts about skills.
const (
	maxListBytes = 16 << 10
	maxNameChars = 100 // characters of an unknown name
)

type args struct {
	Action    string `json:"action,omitzero" also:"operation command" enum:"list|load" hidden:"yes" doc:"load if a name is given; list names all"`
	Name      string `json:"name,omitzero" also:"skill skill_name"`
	Arguments string `json:"arguments,omitzero" also:"args input prompt"`
}

func (a args) isLoad() bool { return a.Action == "load" || a.Action == "" && a.Name != "" }

// skillName returns the skill's name in the catalogue.
func (a args) skillName() string { return strings.TrimPrefix(strings.TrimSpace(a.Name), "/") }

// Skill returns the tool that lists and loads the skills of a catalogue.
func Skill(c *skills.Catalogue) tool.Tool {
	return tool.Func[args]{
		Name: "skill", Doc: doc,
		Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "Skill"}, {Dialect: tool.CoAuthor, Name: "activateSkill"},
			{Name: "load_skill"}, {Name: "use_skill"}},
		Plan: func(_ context.Context, a args) (tool.Plan, error) {
			target, title, preview := "list", "list of skills", "list the skills"
			if a.isLoad() {
				target = shortenName(a.skillName())
				title, preview = target, "load the skill "+target
			}
			note := tool.Effect{Kind: tool.Note, Target: target}
			return tool.Plan{Title: title, Effects: []tool.Effect{note}, Preview: display.Text(preview)}, nil
		},
		Do: func(_ context.Context, a args, _ io.Writer) (tool.Result, error) {
			if a.isLoad() {
				return loadSkill(c, a), nil
			}
			all, _ := c.List()
			return tool.Result{Value: listResult{true, skills.FormatList(all, maxListBytes)},
				Summary: fmt.Sprintf("%d skills", len(all))}, nil
		},
	}
}

type loadResult struct {
	OK        bool     `json:"ok"`
	Name      string   `json:"name"`
	Skill     string   `json:"skill"`
	Dir       string   `json:"dir,omitzero"`
	Files     []string `json:"files,omitzero"`
	Truncated bool     `json:"cut,omitzero"`
}

func loadSkill(c *skills.Catalogue, a args) tool.Result {
	if _, known := c.Find(a.skillName()); !known {
		c.Refresh() // it may be new
	}
	l, err := c.Load(a.skillName(), a.Arguments)
	if err != nil { // the turn continues without it
		all, warnings := c.List()
		why := err.Error()
		for _, w := range warnings {
			if strings.Contains(w.Path, "/"+a.skillName()+"/") {
				why = w.String()
			}
		}
		return tool.Result{
			Value:   errorResult{Error: why + "; continue without it", Skills: skills.FormatList(all, maxListBytes)},
			Failed:  true,
			Summary: why,
			Events: []event.Event{event.Notice{Level: event.LevelWarn,
				Text: fmt.Sprintf("skill %s could not be used (%s); continuing without it", shortenName(a.skillName()), why)}},
		}
	}
	r := loadResult{OK: true, Name: l.Name, Skill: l.Body, Files: l.Files, Truncated: l.Truncated}
	if l.Path != "" {
		r.Dir = path.Dir(l.Path)
	}
	return tool.Result{Value: r, Summary: tool.FormatCount(strings.Count(l.Body, "\n")+1, "line", "lines")}
}

type errorResult struct {
	OK     bool   `json:"ok"`
	Error  string `json:"error"`
	Skills string `json:"skills,omitzero"`
}

type listResult struct {
	OK     bool   `json:"ok"`
	Skills string `json:"skills"`
}

// shortenName returns a name short enough to show.
func shortenName(name string) string {
	if runes := []rune(name); len(runes) > maxNameChars {
		return string(runes[:maxNameChars]) + "…"
	}
	return name
}
