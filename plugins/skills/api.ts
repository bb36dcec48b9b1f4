export { SkillKind, type SkillSpec } from './skill-kind.js'
