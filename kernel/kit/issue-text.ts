export { issueLine, issueText } from '../../schemas/kernel/issue-text.js'
