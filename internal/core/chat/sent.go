package chat

// SentRequest is a request without its messages. With the messages, which are on record, it restores the
// request body byte for byte.
type SentRequest struct {
	Wire   string `json:"wire"`
	Model  string `json:"model"`
	Effort string `json:"effort,omitempty"`
	// Head and Tail are the parts of the body before and after the messages. On record, Head is empty if it
	// equals that of the previous request in the same conversation.
	Head        string `json:"head,omitempty"`
	Tail        string `json:"tail"`
	CallsAsText bool   `json:"asText,omitempty"` // calls were encoded as text
	Size        int    `json:"size"`             // size of the body in bytes
	Checksum    uint32 `json:"sum"`              // CRC-32C of the body
}
