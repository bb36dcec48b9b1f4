/** `svc/plugins/redaction`: what finds secrets in texts, for those who have texts of their own to clean. */
export { LONGEST_FORM } from './forms.js'
export { redactEnvironment, redactText } from './looks.js'
export { SecretMatcher } from './matcher.js'
