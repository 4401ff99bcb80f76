package compact

import (
	"encoding/json"
	"fmt"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/lazy"
)

// maxSkillsBytes limits the size of carried-over skills, in bytes.
const maxSkillsBytes = 24 << 10

// skillPreamble begins a message that carries a skill over.
const skillPreamble = "A skill loaded earlier, still in force:\n\n"

var skillPattern = lazy.Regexp(`(?s)<skill name="([^"\n]{1,100})">\n.*?\n</skill>`)

// SkillMessages returns the skills loaded in old as messages to carry over unchanged:
// the latest version of each, while space lasts. It recognises them by their
// form in the user's messages, in results, and in earlier messages from Skills.
func SkillMessages(old []chat.Message) []chat.Message {
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
			for _, found := range skillPattern().FindAllStringSubmatch(m.Text(), -1) {
				note(found[1], found[0])
			}
		}
		for r := range chat.PartsOf[chat.ToolResult](m) {
			if name, body, ok := parseSkillResult(r.Text); ok {
				note(name, fmt.Sprintf("<skill name=%q>\n%s\n</skill>", name, strings.TrimRight(body, "\n")))
			}
		}
	}
	var kept []chat.Message
	room := maxSkillsBytes
	for _, name := range names {
		if room -= len(texts[name]); room >= 0 {
			kept = append(kept, chat.TextMessage(chat.User, skillPreamble+texts[name]))
		}
	}
	return kept
}

// parseSkillResult parses the result of loading a skill.
func parseSkillResult(result string) (name, body string, ok bool) {
	var r struct {
		OK          bool
		Name, Skill string
	}
	if !strings.Contains(result, `"skill"`) || json.Unmarshal([]byte(result), &r) != nil {
		return "", "", false
	}
	return r.Name, r.Skill, r.OK && r.Name != "" && r.Skill != ""
}

// isSkillMessage reports whether a message contains only a skill.
func isSkillMessage(m chat.Message) bool {
	text := m.Text()
	return strings.HasPrefix(text, skillPreamble) || strings.HasPrefix(text, "Follow this skill.\n\n<skill name=")
}
