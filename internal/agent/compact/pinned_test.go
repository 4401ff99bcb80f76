package compact_test

import (
	"fmt"
	"strings"
	"testing"

	"coder/internal/agent/compact"
	"coder/internal/core/chat"
)

func TestWhatAPersonSaidIsToHoldForGoodOutlivesAnyNumberOfWords(t *testing.T) {
	var old []chat.Message
	for i := range 3000 {
		words := fmt.Sprintf("question %d about something in the code", i)
		switch i {
		case 7:
			words = "remember: the colour is TEAL-7"
		case 1500:
			words = "以后提交信息都用中文"
		}
		old = append(old, chat.TextMessage(chat.User, words))
	}
	m := compact.NewMessage("nothing of note", compact.CollectCarryover(old), 2000)
	for range 3 { // and any number of compactions
		text := m.Text()
		for _, want := range []string{"the colour is TEAL-7", "以后提交信息都用中文", "question 2999"} {
			if strings.Count(text, want) != 1 {
				t.Fatalf("%q stands %d times in:\n%.600s", want, strings.Count(text, want), text)
			}
		}
		m = compact.NewMessage("still nothing", compact.CollectCarryover(append([]chat.Message{m}, old[2000:]...)), 2000)
	}
}
