package compact

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/event"
)

// SummaryHeader is the first line of a summary message.
const SummaryHeader = "[COMPACTION_SUMMARY]"

// summaryTag opens the actual summary, after everything that coder reads back, and summaryEnd closes it.
const (
	summaryTag = "\n<summary>\n"
	summaryEnd = "\n</summary>"
)

const preamble = `What was said before this point, summarised to save room. The user's own words still hold. Carry on from here: do not start
over, and do not ask again for what is written below.`

// Carryover is what survives besides the summary.
type Carryover struct {
	UserTexts []string     // what the user wrote, oldest first
	Todos     []event.Todo // the current list
	Skills    []string     // loaded skills, by name
	Files     []string     // files in use, the latest last
}

// maxFiles limits the number of remembered files.
const maxFiles = 40

// CollectCarryover finds what must survive from old: the user's words and the files that
// calls named, those of an earlier summary first. The caller adds todos and skills.
func CollectCarryover(old []chat.Message) Carryover {
	var k Carryover
	for _, m := range old {
		switch {
		case IsSummary(m):
			text := m.Text()
			k.UserTexts = append(k.UserTexts, sectionItems(text, "user_words")...)
			k.addFiles(sectionItems(text, "files")...)
		case m.Role == chat.User && !isSkillMessage(m):
			if words := singleLine(userText(m)); words != "" {
				k.UserTexts = append(k.UserTexts, words)
			}
		}
		for c := range chat.PartsOf[chat.ToolCall](m) {
			k.addFiles(argumentPaths(c)...)
		}
	}
	return k
}

// addFiles adds files; a file that occurs again moves to the end.
func (k *Carryover) addFiles(files ...string) {
	for _, f := range files {
		if f = singleLine(f); f == "" {
			continue
		}
		if i := slices.Index(k.Files, f); i >= 0 {
			k.Files = slices.Delete(k.Files, i, i+1)
		}
		k.Files = append(k.Files, f)
	}
	k.Files = k.Files[max(0, len(k.Files)-maxFiles):]
}

// argumentPaths lists the files in a call's arguments.
func argumentPaths(c chat.ToolCall) []string {
	var args struct {
		Path      any `json:"path"`
		FilePath  any `json:"file_path"`
		FilePath2 any `json:"filePath"`
	}
	if json.Unmarshal(c.Args, &args) != nil {
		return nil
	}
	var found []string
	for _, v := range []any{args.Path, args.FilePath, args.FilePath2} {
		if s, ok := v.(string); ok && s != "" && s != "." && len(s) < 500 {
			found = append(found, s)
		}
	}
	return found
}

// userText returns what the user wrote, without the reminders sent with
// it: of several texts, the last ones, which begin with an empty line.
func userText(m chat.Message) string {
	var texts []string
	for t := range chat.PartsOf[chat.Text](m) {
		texts = append(texts, string(t))
	}
	if n := len(texts); n > 1 && strings.HasPrefix(texts[n-1], "\n\n") {
		texts = texts[:n-1]
	}
	return strings.Join(texts, "")
}

// IsSummary reports whether m summarises an earlier part of the conversation.
func IsSummary(m chat.Message) bool {
	if m.Role != chat.User {
		return false
	}
	text := m.Text()
	return strings.HasPrefix(text, SummaryHeader+"\n") && strings.Contains(text, summaryTag)
}

// SummaryText returns the actual summary in a summary message, which may have reminders added.
func SummaryText(m chat.Message) string {
	_, text, _ := strings.Cut(m.Text(), summaryTag)
	if end := strings.LastIndex(text, summaryEnd); end >= 0 {
		text = text[:end]
	}
	return strings.TrimSpace(text)
}

// sectionItems returns the items in one part of a summary message. The parts that coder reads back
// precede the summary and have one item per line, so that no text can look like the end of a part.
func sectionItems(text, name string) []string {
	_, rest, ok := strings.Cut(text, "\n<"+name+">\n")
	if before, _, _ := strings.Cut(text, summaryTag); !ok || !strings.Contains(before, "\n<"+name+">\n") {
		return nil
	}
	var items []string
	for l := range strings.Lines(rest) {
		item, ok := strings.CutPrefix(strings.TrimRight(l, "\n"), "- ")
		if !ok {
			break
		}
		items = append(items, item)
	}
	return items
}

// bytesPerToken converts tokens to bytes, conservatively.
const bytesPerToken = 3

// NewMessage returns the message that replaces everything before it: the summary
// and k. It uses about room tokens at most, shortening where necessary.
func NewMessage(summary string, k Carryover, room int) chat.Message {
	budget := max(room, minSummaryTokens) * bytesPerToken
	var b strings.Builder
	b.WriteString(SummaryHeader + "\n" + preamble + "\n")
	writeSection(&b, "user_words", fitUserTexts(k.UserTexts, budget/3))
	var lines []string
	for _, t := range k.Todos {
		lines = append(lines, fmt.Sprintf("[%s] %s", t.Status, t.Content))
	}
	writeSection(&b, "todos", fitItems(lines, budget/8))
	writeSection(&b, "skills", fitItems(k.Skills, budget/16))
	writeSection(&b, "files", fitItems(k.Files, budget/8))
	left := max(budget-b.Len(), budget/4)
	if summary = strings.TrimSpace(summary); len(summary) > left {
		summary = headOf(summary, left) + "\n[the summary was cut here]"
	}
	b.WriteString(summaryTag + summary + summaryEnd)
	return chat.TextMessage(chat.User, b.String())
}

func writeSection(b *strings.Builder, name string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "\n<%s>\n", name)
	for _, item := range items {
		b.WriteString("- " + item + "\n")
	}
	fmt.Fprintf(b, "</%s>\n", name)
}

// itemLengths are the item lengths that fit tries in turn until all items fit.
var itemLengths = []int{1200, 600, 300, 150, 80}

// fitItems limits items to budget bytes: each becomes one line, long items
// lose their middle, and if that is not enough, items in the middle go.
func fitItems(items []string, budget int) []string {
	var short []string
	for _, n := range itemLengths {
		short = short[:0]
		size := 0
		for _, item := range items {
			item = cutMiddle(singleLine(item), n)
			short = append(short, item)
			size += len(item) + len("- \n")
		}
		if size <= budget {
			return short
		}
	}
	from, size := len(short), len(short[0])+40
	for from > 1 && size+len(short[from-1])+3 <= budget {
		from--
		size += len(short[from]) + 3
	}
	if from == 1 {
		return short
	}
	kept := []string{short[0], fmt.Sprintf("[%d more left out]", from-1)}
	return append(kept, short[from:]...)
}

// permanentWords lists words that mark an instruction as permanent.
var permanentWords = []string{
	"remember", "from now on", "always", "never", "must", "important", "keep in mind", "note that", "don't forget",
	"do not forget", "make sure",
	"记住", "记得", "请记", "以后", "总是", "始终", "务必", "必须", "不要", "别忘", "注意", "重要",
}

// fitUserTexts is fit for the user's words: if space is short, permanent instructions go last.
func fitUserTexts(words []string, budget int) []string {
	all := fitItems(words, budget)
	if len(all) == len(words) {
		return all
	}
	var lasting []string
	room := budget / 2
	for _, w := range words {
		w = cutMiddle(singleLine(w), itemLengths[2])
		lower := strings.ToLower(w)
		if slices.ContainsFunc(permanentWords, func(p string) bool { return strings.Contains(lower, p) }) && len(w)+
			3 <= room {
			lasting = append(lasting, w)
			room -= len(w) + 3
		}
	}
	for _, w := range fitItems(words, budget/2+room) {
		if !slices.Contains(lasting, w) {
			lasting = append(lasting, w)
		}
	}
	return lasting
}

// singleLine returns s as one line.
func singleLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// cutMiddle shortens s to at most about n bytes by removing its middle.
func cutMiddle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return clip.Head(s, 2*n/3) + " […] " + clip.Tail(s, n/3)
}
