export { issueText } from '../../schemas/kernel/issue-text.js'
