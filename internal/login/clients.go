package login

import "slices"

// All are the logins that are known, read from the real clients (Claude Code
// 2.1, Codex 0.169, Gemini CLI 0.61, OpenCode 1.18).
//
// To add one: an entry here, its hosts in the client's network preset, and a
// case in the test of this package.
func All() []Login {
	return slices.Concat([]Login{claudeAccount(), claudeKey(), codexAccount(), codexKey(), geminiAccount()}, opencodeAccounts(), opencodeKeys())
}

// claudeAPI is where Claude Code sends its access token. The left-out path makes
// an API key of an account, which would be answered in plain.
func claudeAPI() []Route {
	return []Route{{Host: "api.anthropic.com", Never: []string{"/api/oauth/claude_cli/create_api_key", "/v1/oauth"}}}
}

func claudeAccount() Login {
	const endpoint, path = "platform.claude.com", "/v1/oauth/token"
	return Login{
		Name: "claude", Client: "claude", Title: "Claude Code with an account",
		File: ".claude/.credentials.json", Moved: "CLAUDE_CONFIG_DIR", Levels: 1,
		At: []string{"claudeAiOauth"},
		Tokens: []Token{
			{Role: Access, At: []string{"accessToken"}, Answer: "access_token", To: claudeAPI()},
			{Role: Refresh, At: []string{"refreshToken"}, Answer: "refresh_token", To: []Route{{Host: endpoint, Under: []string{path}}}},
		},
		Keep:   [][]string{{"expiresAt"}, {"scopes"}, {"subscriptionType"}, {"rateLimitTier"}},
		Beside: []Beside{{File: ".claude.json", Keep: [][]string{{"oauthAccount"}}}},
		Expiry: []string{"expiresAt"},
		Renewal: &Renewal{
			Hosts: []string{endpoint}, Path: path, Client: "9d1c250a-e61b-44d9-88ed-5944d1962f5e",
			Keep: []string{"token_type", "expires_in", "scope", "account", "organization"}, Scopes: []string{"scopes"},
		},
		Locks: []string{".claude/.oauth_refresh.lock", ".claude.lock"},
	}
}

// claudeKey is the key that Claude Code keeps after a login with a Console
// account.
func claudeKey() Login {
	return Login{
		Name: "claude-key", Client: "claude", Title: "Claude Code with a key of the Console",
		File: ".claude.json", Moved: "CLAUDE_CONFIG_DIR",
		Tokens: []Token{{Role: Access, At: []string{"primaryApiKey"}, To: claudeAPI()}},
		Keep:   [][]string{{"oauthAccount"}},
	}
}

const codexFile = ".codex/auth.json"

func codexAccount() Login {
	const endpoint, path = "auth.openai.com", "/oauth/token"
	return Login{
		Name: "codex", Client: "codex", Title: "Codex with a ChatGPT account",
		File: codexFile, Moved: "CODEX_HOME", Levels: 1,
		Tokens: []Token{
			// The same host has the conversations of the account.
			{Role: Access, At: []string{"tokens", "access_token"}, Answer: "access_token", To: []Route{{Host: "chatgpt.com", Under: []string{"/backend-api/codex", "/backend-api/wham"}}}},
			{Role: Refresh, At: []string{"tokens", "refresh_token"}, Answer: "refresh_token", To: []Route{{Host: endpoint, Under: []string{path}}}},
			{Role: Identity, At: []string{"tokens", "id_token"}, Answer: "id_token"},
		},
		Keep:  [][]string{{"auth_mode"}, {"tokens", "account_id"}, {"last_refresh"}},
		Stamp: []string{"last_refresh"},
		Renewal: &Renewal{
			Hosts: []string{endpoint}, Path: path, Client: "app_EMoamEEZ73f0CkXaXp7hrann",
			Keep: []string{"token_type", "expires_in", "scope"},
		},
	}
}

func codexKey() Login {
	return Login{
		Name: "codex-key", Client: "codex", Title: "Codex with an API key",
		File: codexFile, Moved: "CODEX_HOME", Levels: 1,
		Tokens: []Token{{Role: Access, At: []string{"OPENAI_API_KEY"}, To: []Route{{Host: "api.openai.com"}}}},
		Keep:   [][]string{{"auth_mode"}},
	}
}

func geminiAccount() Login {
	const endpoint, path = "oauth2.googleapis.com", "/token"
	return Login{
		Name: "gemini", Client: "gemini", Title: "Gemini CLI with a Google account",
		File: ".gemini/oauth_creds.json",
		Tokens: []Token{
			// The token is valid for all of Google Cloud: it goes to these alone.
			{Role: Access, At: []string{"access_token"}, Answer: "access_token", To: []Route{{Host: "cloudcode-pa.googleapis.com"}, {Host: endpoint, Under: []string{"/tokeninfo"}}}},
			{Role: Refresh, At: []string{"refresh_token"}, Answer: "refresh_token", To: []Route{{Host: endpoint, Under: []string{path}}}},
			{Role: Identity, At: []string{"id_token"}, Answer: "id_token"},
		},
		Keep:   [][]string{{"scope"}, {"token_type"}, {"expiry_date"}},
		Beside: []Beside{{File: ".gemini/google_accounts.json", Keep: [][]string{{"active"}, {"old"}}}},
		Expiry: []string{"expiry_date"},
		Renewal: &Renewal{
			Hosts: []string{endpoint}, Path: path, Client: "681255809395-oo8ft2oprdrnp9e3aqf6av3hmdib135j.apps.googleusercontent.com",
			Keep: []string{"token_type", "expires_in", "scope"}, Scopes: []string{"scope"},
		},
	}
}
