package chat_test

import (
	"testing"

	"coder/internal/core/chat"
)

func TestOnlyWhatAPersonWroteIsACommand(t *testing.T) {
	for o, want := range map[chat.Origin]bool{
		chat.Typed: true, chat.Line: true, chat.Unknown: true,
		chat.Pasted: false, chat.Stdin: false, chat.Linked: false, chat.Attached: false, chat.Composed: false,
	} {
		w := append(chat.From(chat.Typed, " \n"), chat.Piece{Origin: o, Text: "/mode yolo"})
		if w.Commands() != want || w.Text() != " \n/mode yolo" || w.Trim().Text() != "/mode yolo" {
			t.Errorf("%q: a command: %v, want %v (%q)", o, w.Commands(), want, w.Trim().Text())
		}
	}
}

func TestNamesInTheTextsOfOthersDoNotCount(t *testing.T) {
	w := chat.Words{{Origin: chat.Typed, Text: "read @a and "}, {Origin: chat.Linked, Text: "@b"}, {Origin: chat.Attached, Text: "@c"}, {Origin: chat.Composed, Text: "@d"}}
	if got := w.Naming(); got != "read @a and @b\n\n" || w.Text() != "read @a and @b@c@d" {
		t.Errorf("%q of %q", got, w.Text())
	}
}
