/** `svc/plugins/redaction`: finds secrets in texts, for plugins that redact texts of their own. */
export { LONGEST_FORM } from './forms.js'
export { SecretMatcher } from './matcher.js'
export { redactEnvironment, redactText } from './secret-patterns.js'
