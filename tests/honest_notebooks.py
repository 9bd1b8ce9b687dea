FORMS = {}
