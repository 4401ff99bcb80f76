//go:build unix

package repl

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"coder/internal/core/event"
	"coder/internal/core/lazy"
	"coder/internal/core/uip"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
)

// Answer is an unfinished answer: its question, the answers to the first parts, the text typed at the
// next, and the mode chosen there for the step after the question; "" if none.
type Answer struct {
	Question   string
	Given      []string
	Text, Mode string
}

func (a Answer) isEmpty() bool { return a.Text+a.Mode == "" && len(a.Given) == 0 }

// forQuestion returns the part of the answer that belongs to a question.
func (a Answer) forQuestion(q uip.Request) Answer {
	if a.Question != q.ID {
		return Answer{Question: q.ID}
	}
	a.Given = a.Given[:min(len(a.Given), max(len(q.Parts)-1, 0))]
	return a
}

// UnsentText is the text not sent yet: the messages that wait for the turn, the draft, and an unfinished
// answer. Pastes are the texts in it that are one unit.
type UnsentText struct {
	Queue  []string
	Draft  string
	Answer Answer
	Pastes []string
	Again  lineedit.Draft // if set, Draft as it was written
}

// allText returns all of the text, to detect changes.
func (u UnsentText) allText() string {
	a := u.Answer
	return strings.Join(slices.Concat(u.Queue, a.Given, []string{u.Draft, a.Question, a.Text, a.Mode}), "\x00")
}

// The words that mean yes, no, show everything, hunk numbers, and trust the folder.
var (
	yesWords   = []string{"y", "yes", "ok", "是", "好", "好的", "同意", "可以"}
	noWords    = []string{"n", "no", "否", "不", "不行", "不要", "不同意", "不可以", "拒绝"}
	viewWords  = []string{"v", "view", "all", "全部", "查看", "看"}
	hunkWords  = []string{"h", "hunk", "hunks", "块"}
	trustWords = []string{"t", "trust", "信任", "trust this folder", "信任此目录"}
)

// rememberWords are the words for an approval that is remembered.
var rememberWords = map[string][]string{
	uip.OptionAlways:      {"a", "always", "always in this project", "总是", "始终", "一直", "本项目始终允许"},
	uip.OptionSession:     {"s", "session", "always in this session", "本次", "本次会话", "会话", "本次会话始终允许"},
	uip.OptionAlwaysBelow: {"d", "dir", "below", "目录", "此目录"},
}

// parseAnswer parses a line as an answer.
func parseAnswer(words term.Translator, q uip.Request, line string) (uip.Response, bool) {
	line = strings.TrimSpace(line)
	switch {
	case line == "":
		best := q.Display.Metadata[uip.MetaOnEnter]
		return uip.Response{Option: best}, best != ""
	case q.Kind == uip.KindComposite:
		// all, none, or the numbers of the approved calls
		if a, ok := parseConfirm(q, line); ok {
			return a, true
		}
		return parseNumbers(q, line)
	case q.Kind == uip.KindConfirm:
		if a, ok := parseHunks(q, line); ok {
			return a, true
		}
		return parseConfirm(q, line)
	}
	if q.Kind == uip.KindInput { // here a number is text
		return uip.Response{Input: line}, true
	}
	if option := namedOption(q, line); option != "" {
		return uip.Response{Option: option}, true
	}
	if hasUnknownNumbers(q, line) && !isOwnNumber(q, line) {
		return uip.Response{}, false
	}
	if on := q.Display.Metadata; on[uip.MetaOnYes]+on[uip.MetaOnNo]+on[uip.MetaOnText] != "" {
		return parseChoice(words, q, line)
	}
	if line == "?" || line == "？" { // the user asks for the possible answers
		return uip.Response{}, false
	}
	if q.Author == event.ActorRecovery {
		return parseRecovery(words, q, line)
	}
	return uip.Response{Input: line}, true
}

// parseRecovery parses the answer about a task that was cut off: a yes is the default, the first words of
// a label choose it. Any other line is a new prompt, except a no and a single letter, which may mean
// anything.
func parseRecovery(words term.Translator, q uip.Request, line string) (uip.Response, bool) {
	if slices.Contains(yesWords, strings.ToLower(line)) {
		return uip.Response{Option: q.Display.Metadata[uip.MetaOnEnter]}, true
	}
	if utf8.RuneCountInString(line) == 1 || slices.Contains(noWords, strings.ToLower(line)) {
		return uip.Response{}, false
	}
	for _, o := range q.Options {
		for _, label := range []string{words.TranslateText(o.Label), o.Label} {
			rest, begins := cutPrefixFold(label, line)
			if letter, _ := utf8.DecodeRuneInString(rest); begins && (letter > unicode.MaxLatin1 || !unicode.IsLetter(letter)) {
				return uip.Response{Option: o.ID}, true
			}
		}
	}
	return uip.Response{Input: line}, true
}

// cutPrefixFold returns the text after prefix, ignoring case.
func cutPrefixFold(text, prefix string) (rest string, found bool) {
	if len(prefix) > len(text) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return "", false
	}
	return text[len(prefix):], true
}

// hasUnknownNumbers reports whether a line has only numbers, at least one without an option.
func hasUnknownNumbers(q uip.Request, line string) bool {
	numbers := strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" ,，、", c) })
	return strings.Trim(line, "0123456789 ,，、") == "" && slices.ContainsFunc(numbers,
		func(n string) bool { return namedOption(q, n) == "" })
}

// isOwnNumber reports whether a number is an answer of the person's own to a question of the model:
// it has more digits than the number of any option.
func isOwnNumber(q uip.Request, line string) bool {
	on := q.Display.Metadata
	return strings.Trim(line, "0123456789") == "" && len(line) > len(strconv.Itoa(len(q.Options))) &&
		q.Author != event.ActorRecovery && on[uip.MetaOnYes]+on[uip.MetaOnNo]+on[uip.MetaOnText] == ""
}

// hasWords reports whether an unsent line at a question says more than which answer is meant.
func hasWords(words term.Translator, q uip.Request, line string) bool {
	a, ok := parseAnswer(words, q, line)
	said := a.Comment
	if a.Option == "" {
		said += a.Input
	}
	for _, part := range a.Parts {
		said += part.Comment
	}
	return (!ok || said != "") && utf8.RuneCountInString(strings.TrimSpace(line)) > 3
}

// namedOption returns the option that a word names: by number, id, alias or label.
func namedOption(q uip.Request, word string) string {
	for i, o := range q.Options {
		if word == strconv.Itoa(i+1) || strings.EqualFold(word, o.ID) ||
			strings.EqualFold(word, q.Display.Metadata[uip.MetaAliasPrefix+o.ID]) {
			return o.ID
		}
	}
	for _, o := range q.Options {
		if strings.EqualFold(word, cmp.Or(q.Display.Metadata["label"+o.ID], o.Label)) {
			return o.ID
		}
	}
	return ""
}

// parseChoice parses the choice of one of the program's options, followed by a comment for the model:
// yes, 2 and be quick, no, think of the tests. The beginning of a label chooses it too. It does not
// guess: a choice followed by any other text, such as a condition, is no answer.
func parseChoice(words term.Translator, q uip.Request, line string) (uip.Response, bool) {
	if line == "?" || line == "？" { // the user asks for the possible answers
		return uip.Response{}, false
	}
	word, between, rest := firstWord(line)
	on, option := q.Display.Metadata, namedOption(q, word)
	if slices.Contains(yesWords, word) {
		option = on[uip.MetaOnYes]
	}
	comment, agreed := splitYesComment(between, rest)
	switch {
	case slices.Contains(noWords, word) && on[uip.MetaOnNo] != "" && (rest == "" || strings.ContainsAny(between, ",，:：")):
		return uip.Response{Option: on[uip.MetaOnNo], Comment: rest}, true
	case option != "" && agreed:
		return uip.Response{Option: option, Comment: comment}, true
	case option != "" && option == on[uip.MetaOnText] && strings.Trim(word, "0123456789") == "": // any text is its comment
		return uip.Response{Option: option, Comment: rest}, true
	case option != "" && (slices.Contains(yesWords, word) || strings.Trim(word, "0123456789") == ""):
		return uip.Response{}, false
	}
	for _, o := range q.Options {
		for _, label := range []string{words.TranslateText(o.Label), o.Label} {
			if _, begins := cutPrefixFold(label, line); begins {
				return uip.Response{Option: o.ID}, true
			}
		}
	}
	return uip.Response{Option: on[uip.MetaOnText], Comment: line}, on[uip.MetaOnText] != ""
}

// firstWord splits a line: "no, use b" is "no" and "use b", and the separator.
func firstWord(line string) (word, between, rest string) {
	word = line
	if i := strings.IndexAny(line, separators); i >= 0 {
		rest = strings.TrimLeft(line[i:], separators)
		word, between = line[:i], line[i:len(line)-len(rest)]
	}
	return strings.ToLower(word), between, rest
}

// parseNumbers parses the numbers of the approved calls of a card, and with a dot the hunks of a call: 1
// 2.1 2.3. Text after the numbers that continues a yes is for the model: 1 3 and leave the others.
func parseNumbers(q uip.Request, line string) (a uip.Response, ok bool) {
	line, comment, ok := splitNumbers(line, "0123456789.,，、 \t")
	if !ok {
		return a, false
	}
	ok = false
	for _, part := range q.Parts {
		a.Parts = append(a.Parts, uip.Response{ID: part.ID, Option: uip.OptionReject})
	}
	for _, f := range strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" ,，、\t", c) }) {
		call, hunk, some := strings.Cut(f, ".")
		n, err := strconv.ParseUint(call, 10, 16) // no sign: +1 is not the number of a call
		if err != nil || n < 1 || int(n) > len(q.Parts) || some && !hasOption(q.Parts[n-1], uip.OptionSome) {
			return uip.Response{}, false
		}
		switch so := &a.Parts[n-1]; {
		case !some:
			so.Option, so.Input = uip.OptionApprove, ""
		case so.Option != uip.OptionApprove:
			so.Option, so.Input = uip.OptionSome, strings.TrimSpace(so.Input+" "+hunk)
		}
		ok = true
	}
	for i := range a.Parts {
		a.Parts[i].Comment = comment // only the model can tell whether it is about the approved or the denied calls
	}
	return a, ok
}

// parseHunks parses the approved hunks of a change, and a comment for the model: h 1 3 the rest can wait.
func parseHunks(q uip.Request, line string) (a uip.Response, ok bool) {
	word, rest, _ := strings.Cut(line, " ")
	if !slices.Contains(hunkWords, strings.ToLower(word)) || !hasOption(q, uip.OptionSome) {
		return a, false
	}
	numbers, comment, ok := splitNumbers(rest, "0123456789-,，、 \t")
	if !ok && comment != "" { // the comment explains what was left out
		first, _, _ := strings.Cut(comment, " ")
		ok = !slices.Contains(conditionWords, strings.ToLower(strings.Trim(first, separators)))
	}
	return uip.Response{Option: uip.OptionSome, Input: numbers, Comment: comment}, ok
}

// numberJoiner matches the word between two numbers that both count.
var numberJoiner = lazy.Regexp(`(?i)([0-9][,，]?)\s*(?:\band\b|&|和|与|及)\s*([0-9])`)

// splitNumbers splits a line that begins with numbers, written with these signs, from the comment for the
// model. It does not guess: letters directly after a number, or a condition, are no answer.
func splitNumbers(line, signs string) (numbers, comment string, ok bool) {
	for numberJoiner().MatchString(line) {
		line = numberJoiner().ReplaceAllString(line, "$1 $2")
	}
	end := strings.IndexFunc(line, func(c rune) bool { return !strings.ContainsRune(signs, c) })
	if end < 0 {
		return strings.TrimSpace(line), "", true
	}
	numbers = strings.TrimRight(line[:end], separators+"、")
	if len(numbers) == end && line[end] < utf8.RuneSelf && line[end] != ':' {
		return "", "", false // 1-2x is not a number
	}
	words := strings.TrimLeft(line[end:], separators)
	comment, ok = splitYesComment(line[len(numbers):end], words)
	if first, _, _ := strings.Cut(words, " "); strings.ContainsAny(first, "0123456789") {
		return "", "", false // +3 may add a number
	}
	return numbers, comment, ok
}

const separators = " ,，:：\t"

func parseConfirm(q uip.Request, line string) (uip.Response, bool) {
	word, between, rest := firstWord(line)
	comment, agreed := splitYesComment(between, rest)
	switch {
	case strings.EqualFold(line, "yes, this once") || line == "仅此一次，同意":
		return uip.Response{Option: uip.OptionApprove}, true
	case slices.Contains(yesWords, word) && agreed:
		return uip.Response{Option: uip.OptionApprove, Comment: comment}, true
	case slices.Contains(noWords, word):
		return uip.Response{Option: uip.OptionReject, Comment: rest}, true
	}
	for option, said := range rememberWords {
		if (slices.Contains(said, word) && rest == "" || slices.Contains(said, strings.ToLower(line))) &&
			hasOption(q, option) {
			return uip.Response{Option: option}, true
		}
	}
	return uip.Response{}, false
}

// splitYesComment returns the comment after a yes, if it continues the yes: y and keep it short, 好，并写测试, or asks
// for something: y but please be brief, 同意，但是请简短. Any other text, such as a condition, makes the yes
// invalid: coder could not enforce it.
func splitYesComment(between, words string) (comment string, ok bool) {
	if comment, ok := splitRequest(words); ok {
		return comment, true
	}
	first, rest, _ := strings.Cut(words, " ")
	switch first = strings.ToLower(first); {
	case slices.Contains(yesWords, strings.ToLower(words)): // said twice
		return "", true
	case words == "" || slices.Contains([]string{"also", "then", "please"}, first):
		return words, true
	case first == "and":
		return strings.TrimSpace(rest), true
	case slices.Contains(conditionWords, strings.Trim(first, separators)):
		return "", false
	}
	for _, c := range []string{"但", "不过", "除非", "除了", "如果", "只"} {
		if strings.HasPrefix(words, c) {
			return "", false
		}
	}
	for _, c := range []string{"并", "另外", "然后", "请", "同时", "顺便"} {
		if strings.HasPrefix(words, c) {
			return words, true
		}
	}
	return words, strings.ContainsAny(between, ",，:：")
}

// splitRequest returns the request after a yes, without the "but": but please be brief, 但是请简短. Text that might
// withdraw or delay any of the approval is not a request.
func splitRequest(words string) (comment string, ok bool) {
	for _, but := range []string{"but", "但是", "但", "不过"} {
		if len(words) < len(but) || !strings.EqualFold(words[:len(but)], but) {
			continue
		}
		comment = strings.TrimLeft(words[len(but):], separators)
		first, rest, _ := strings.Cut(comment, " ")
		switch {
		case strings.EqualFold(first, "please"):
			all := strings.FieldsFunc(strings.ToLower(rest), func(c rune) bool {
				return strings.ContainsRune(separators+
					".;!", c)
			})
			return comment, !slices.ContainsFunc(all, func(w string) bool {
				return slices.Contains(conditionWords, w) || slices.Contains(delayWords, w) || strings.ContainsAny(w, "'’")
			})
		case strings.HasPrefix(comment, "请"):
			return comment, !strings.ContainsAny(comment, "不别勿莫非无没未先等再才后仅只停慢缓明取消跳问如除")
		}
		return "", false
	}
	return "", false
}

// delayWords are words that may delay or withdraw the approval.
var delayWords = []string{"first", "later", "tomorrow", "before", "until", "never", "stop", "hold", "cancel", "skip",
	"instead", "cannot", "ask"}

// conditionWords are words that make a yes conditional.
var conditionWords = []string{"but", "if", "unless", "except", "only", "not", "when", "after", "once", "without", "n",
	"no", "don't", "dont", "wait"}

func hasOption(q uip.Request, id string) bool {
	return slices.ContainsFunc(q.Options, func(o uip.Option) bool { return o.ID == id })
}
