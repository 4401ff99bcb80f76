package compact

import (
	"encoding/json"
	"fmt"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/lazy"
)

// skillsRoom limits the size of carried-over skills, in bytes.
const skillsRoom = 24 << 10

// stillInForce begins a message that carries a skill over.
const stillInForce = "A skill loaded earlier, still in force:\n\n"

var skillText = lazy.Regexp(`(?s)<skill name="([^"\n]{1,100})">\n.*?\n</skill>`)

// Skills returns the skills loaded in old as messages to carry over unchanged:
// the latest version of each, while space lasts. It recognises them by their
// form in the user's messages, in results, and in earlier messages from Skills.
func Skills(old []chat.Message) []chat.Message {
	texts := make(map[string]string)
	var names []string
	note := func(name, text string) {
		if _, seen := texts[name]; !seen {
			names = append(names, name)
		}
		texts[name] = text
	}
	for _, m := range old {
		if m.Role == chat.User {
			for _, found := range skillText().FindAllStringSubmatch(m.Text(), -1) {
				note(found[1], found[0])
			}
		}
		for r := range chat.Select[chat.ToolResult](m) {
			if name, body, ok := loadedSkill(r.Text); ok {
				note(name, fmt.Sprintf("<skill name=%q>\n%s\n</skill>", name, strings.TrimRight(body, "\n")))
			}
		}
	}
	var kept []chat.Message
	room := skillsRoom
	for _, name := range names {
		if room -= len(texts[name]); room >= 0 {
			kept = append(kept, chat.Say(chat.User, stillInForce+texts[name]))
		}
	}
	return kept
}

// loadedSkill parses the result of loading a skill.
func loadedSkill(result string) (name, body string, ok bool) {
	var r struct {
		OK          bool
		Name, Skill string
	}
	if !strings.Contains(result, `"skill"`) || json.Unmarshal([]byte(result), &r) != nil {
		return "", "", false
	}
	return r.Name, r.Skill, r.OK && r.Name != "" && r.Skill != ""
}

// isSkill reports whether a message contains only a skill.
func isSkill(m chat.Message) bool {
	text := m.Text()
	return strings.HasPrefix(text, stillInForce) || strings.HasPrefix(text, "Follow this skill.\n\n<skill name=")
}
