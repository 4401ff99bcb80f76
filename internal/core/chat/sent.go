package chat

// Sent is what a request was besides the messages in it: with these, which are on
// record, its body can be written again byte for byte.
type Sent struct {
	Wire   string `json:"wire"`
	Model  string `json:"model"`
	Effort string `json:"effort,omitempty"`
	// Head and Tail are the body before the messages and after them. Head is empty
	// on record where it is that of the request before, in the same conversation.
	Head   string `json:"head,omitempty"`
	Tail   string `json:"tail"`
	AsText bool   `json:"asText,omitempty"` // calls were written as text
	Size   int    `json:"size"`             // of the body, in bytes
	Sum    uint32 `json:"sum"`              // its CRC-32C
}
