/** `svc/plugins/redaction`: finds secrets in texts, for plugins that redact texts of their own. */
export { LONGEST_FORM } from './forms.js'
export { redactEnvironment, redactText } from './looks.js'
export { SecretMatcher } from './matcher.js'
