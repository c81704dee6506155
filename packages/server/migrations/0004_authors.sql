-- Who wrote what is there now: nobody decides about their own words. `author` is one more relation of a
-- document to a person.

alter table hermod.document_person drop constraint document_person_relation_check;
alter table hermod.document_person add constraint document_person_relation_check
  check (relation in ('owner', 'contributor', 'approver', 'author'));

-- Documents of before: everybody who changed their words, as the audit trail tells.
insert into hermod.document_person (document_id, relation, person_id, place)
select document_id, 'author', person_id, row_number() over (partition by document_id order by first) - 1
  from (select l.document_id, hermod.current_person(l.modified_by_person_id) as person_id, min(l.id) as first
          from hermod.document_modification_log l join hermod.document d on d.id = l.document_id
         where l.version > 1 and l.modified_by_person_id is not null
           and exists (select from jsonb_object_keys(l.field_changes) k
                        where k in ('content', 'title', 'summary') or k like 'customFields.%')
         group by 1, 2) wrote
 where person_id is not null;
